import Bytes
import HTTPSemantics
import Testing

@testable import Upstream

/// What the response to a check says of its server.
struct CheckJudgeTests {
    private static let ok = "HTTP/1.1 200 OK\r\n"

    /// - Parameters:
    ///   - pieces: the response, as it comes.
    ///   - isClosed: whether the connection ends after them.
    /// - Returns: `nil`: more bytes are needed.
    private static func judge(
        _ pieces: String..., isClosed: Bool = false, _ change: (inout HealthSettings) -> Void = { _ in }
    ) -> CheckEnd? {
        var health = HealthSettings(path: "/up")
        change(&health)
        var judge = CheckJudge(health, maxHeadSize: 1 << 10)
        let input = ByteBuffer(capacity: 64)
        for piece in pieces {
            input.append(string: piece)
            if let end = judge.read(input) { return end }
        }
        return isClosed ? judge.endOfStream() : nil
    }

    @Test(arguments: [200, 204, 302, 399]) func `an expected status is success`(status: Int) {
        #expect(Self.judge("HTTP/1.1 \(status) X\r\nContent-Length: 0\r\n\r\n") == .success)
    }

    @Test(arguments: [404, 500, 503]) func `another status fails at its head`(status: UInt16) {
        #expect(Self.judge("HTTP/1.1 \(status) X\r\nContent-Length: 100\r\n\r\n") == .failed(.status(status)))
    }

    @Test func `the expected statuses are those of the settings`() {
        let end = Self.judge("HTTP/1.1 401 X\r\nContent-Length: 0\r\n\r\n") { $0.expected = 401...403 }
        #expect(end == .success)
        let other = Self.judge(Self.ok + "Content-Length: 0\r\n\r\n") { $0.expected = 401...403 }
        #expect(other == .failed(.status(200)))
    }

    @Test func `the response must be complete, however it comes`() {
        #expect(Self.judge(Self.ok + "Content-Length: 5\r\n\r\nhel") == nil)
        #expect(Self.judge(Self.ok + "Content-Length: 5\r\n\r\nhel", isClosed: true) == .failed(.closed))
        #expect(Self.judge(Self.ok + "Content-Len", "gth: 5\r\n\r\nhel", "lo") == .success)
        #expect(Self.judge(Self.ok + "\r\nto the", " end", isClosed: true) == .success)
        #expect(Self.judge(Self.ok + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", "0\r\n\r\n") == .success)
        #expect(
            Self.judge(Self.ok + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", isClosed: true) == .failed(.closed))
        #expect(Self.judge(isClosed: true) == .failed(.closed))
        #expect(Self.judge("HTTP/1.1 103 Hints\r\n\r\n", Self.ok + "Content-Length: 0\r\n\r\n") == .success)
    }

    @Test func `the content must have the text, wherever its pieces break`() {
        func judge(_ pieces: String..., text: String = "all is ok") -> CheckEnd? {
            let length = pieces.reduce(0) { $0 + $1.utf8.count }
            var health = HealthSettings(path: "/up")
            health.body = text
            var judge = CheckJudge(health, maxHeadSize: 1 << 10)
            let input = ByteBuffer(capacity: 64)
            for piece in [Self.ok + "Content-Length: \(length)\r\n\r\n"] + pieces {
                input.append(string: piece)
                if let end = judge.read(input) { return end }
            }
            return nil
        }
        #expect(judge("aall is o", "kk") == .success)
        #expect(judge("all is okay") == .success)
        #expect(judge("all is Ok") == .failed(.lacks("all is ok")))
        #expect(judge("") == .failed(.lacks("all is ok")))
        #expect(judge("aaab", text: "aab") == .success)
        #expect(judge("it is ok", text: "ok") == .success)
    }

    @Test func `content beyond 64 KiB is not read`() {
        let most = CheckJudge.mostContent
        let endless = Self.ok + "\r\n" + String(repeating: "x", count: most)
        #expect(Self.judge(endless) == .success)
        #expect(Self.judge(String(endless.dropLast())) == nil)
        let late = Self.ok + "\r\n" + String(repeating: "x", count: most - 1) + "ok"
        #expect(Self.judge(late) { $0.body = "ok" } == .failed(.lacks("ok")))
        let inTime = Self.ok + "\r\n" + String(repeating: "x", count: most - 2) + "ok"
        #expect(Self.judge(inTime) { $0.body = "ok" } == .success)
    }

    @Test func `a malformed response, or one to another request, fails`() {
        #expect(Self.judge("SSH-2.0-OpenSSH_9\r\n") == .failed(.malformed(.syntax(.malformedStatusLine))))
        #expect(
            Self.judge(Self.ok + "Content-Length: x\r\n\r\n") == .failed(.malformed(.syntax(.contentLengthInvalid))))
        #expect(
            Self.judge(Self.ok + "Transfer-Encoding: chunked\r\n\r\nzz\r\n")
                == .failed(.malformed(.syntax(.chunkSizeInvalid))))
        #expect(Self.judge("HTTP/1.1 304 X\r\n\r\n") == .failed(.malformed(.unaskedNotModified)))
        let upgrade = "HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
        #expect(Self.judge(upgrade) { $0.expected = 100...599 } == .failed(.malformed(.unaskedSwitch)))
        let interim = String(repeating: "HTTP/1.1 102 X\r\n\r\n", count: ResponseReader.maxInterimResponses + 1)
        #expect(Self.judge(interim) == .failed(.malformed(.tooManyInterimResponses)))
        #expect(
            Self.judge(Self.ok + "A: " + String(repeating: "x", count: 2000) + "\r\n\r\n")
                == .failed(.malformed(.syntax(.headTooLarge))))
    }
}
