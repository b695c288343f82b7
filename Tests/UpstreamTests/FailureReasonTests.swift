import HTTPSemantics
import Telemetry
import Testing

@testable import Upstream

/// What clients and the log are told of a failed exchange.
@Suite struct FailureReasonTests {
    private static let reasons: [UpstreamError.Reason] =
        MessageSyntaxError.Reason.allCases.map { .syntax($0) } + [
            .tooManyInterimResponses, .unaskedSwitch, .earlySwitch, .unaskedNotModified, .unreachable, .forbidden,
            .missing,
            .reset, .unanswered, .queueFull, .shortage, .closedBeforeResponse, .resetBeforeResponse, .notSilent,
            .idleTimeIsUp, .cutOff, .resetInBody, .requestNotTaken, .headLate, .bodyStalled, .tlsProtocol,
            .tlsCertificate,
            .tlsAlert, .tlsCut, .handshakeLate,
        ]

    @Test func `each reason has its own sentence in ASCII, and a name that the log does not clip`() {
        for reason in Self.reasons {
            let text = "\(reason.explanation)"
            #expect(text.hasSuffix(".") && text.utf8.allSatisfy { $0 >= 0x20 && $0 < 0x7f }, "\(text)")
            guard let name = reason.name else { continue }
            #expect("\(name)".utf8.count <= 64)
            #expect("\(name)".utf8.allSatisfy { ($0 | 0x20) >= 0x61 || $0 == 0x2d || $0 == 0x2e || $0 < 0x3a })
        }
        #expect(Set(Self.reasons.map { "\($0.explanation)" }).count == Self.reasons.count)
    }

    @Test(
        arguments: [
            (UpstreamError(.head, .syntax(.bareLineFeed)), .httpProtocolError, "bare-line-feed"),
            (UpstreamError(.headTooLarge, .syntax(.tooManyFields)), .httpResponseHeaderSectionSize, "too-many-fields"),
            (UpstreamError(.body, .syntax(.chunkSizeInvalid)), .httpResponseTransferCoding, "chunk-size-invalid"),
            (UpstreamError(.body, .syntax(.trailersTooLarge)), .httpResponseTrailerSectionSize, "trailers-too-large"),
            (UpstreamError(.body, .cutOff), .httpResponseIncomplete, "body"),
            (UpstreamError(.connect, .unreachable), .destinationIPUnroutable, "connect"),
            (UpstreamError(.connect), .connectionRefused, "connect"),
            (UpstreamError(.handshake, .tlsProtocol), .tlsProtocolError, "tls-protocol"),
            (UpstreamError(.handshake, .tlsCertificate), .tlsCertificateError, "tls-certificate"),
            (UpstreamError(.handshake, .tlsAlert), .tlsAlertReceived, "tls-alert"),
            (UpstreamError(.handshake, .tlsCut), .connectionTerminated, "tls-cut"),
            (UpstreamError(.connectTimeout, .handshakeLate), .connectionTimeout, "connect-timeout"),
            (UpstreamError(.headTimeout, .headLate), .httpResponseTimeout, "head-timeout"),
        ] as [(UpstreamError, ProxyError, String)])
    func `a failure has a type of RFC 9209 and a word in the log`(
        error: UpstreamError, type: ProxyError, word: String
    ) {
        #expect(error.proxyError == type && "\(error.word)" == word)
    }
}
