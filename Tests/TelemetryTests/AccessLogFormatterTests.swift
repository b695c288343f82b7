import Bytes
import Testing

@testable import Telemetry

@Suite struct AccessLogFormatterTests {
    @Test func `a combined line has Apache's format, with the fields of the cache behind`() {
        let example = Example {
            $0.record.verdict = .miss
            $0.record.role = .joinedLate
            $0.record.operation = 42
            $0.record.upstreamStatus = 200
            $0.record.upstreamDuration = 120_000_000
            $0.detail = Array("no-store".utf8)
            $0.referer = Array("http://example.org/".utf8)
            $0.userAgent = Array("curl/8.0".utf8)
            $0.upstream = Array("10.0.0.1:80".utf8)
        }
        #expect(
            example.line(.combined) == """
                192.0.2.1 - - [21/Nov/2026:05:16:44 +0000] "GET /a?b=c HTTP/1.1" 200 1024 "http://example.org/" "curl/8.0" \
                host="example.org" verdict=miss role=joined-late operation=42 time=0.001234 ttfb=0.000250 \
                upstream=10.0.0.1:80 upstream_status=200 upstream_time=0.120000 detail=no-store

                """)
    }

    @Test func `a missing value is a dash in a combined line`() {
        let example = Example {
            $0.record = AccessLogRecord(started: 0, duration: 0)
            ($0.client, $0.method, $0.host, $0.target) = ([], [], [], [])
        }
        #expect(
            example.line(.combined) == """
                - - - [01/Jan/1970:00:00:00 +0000] "- - -" 000 0 "-" "-" \
                host="-" verdict=refused role=none operation=0 time=0.000000 ttfb=- upstream=- upstream_status=- upstream_time=-

                """)
    }

    @Test func `a JSON line names every value`() {
        let example = Example {
            $0.record.verdict = .miss
            $0.record.role = .led
            $0.record.operation = 42
            $0.record.upstreamStatus = 206
            $0.record.upstreamDuration = 2_120_000_000
            $0.detail = Array("too-large".utf8)
            $0.record.isAborted = true
            $0.referer = Array("http://example.org/".utf8)
            $0.userAgent = Array("curl/8.0".utf8)
            $0.upstream = Array("[::1]:80".utf8)
        }
        #expect(
            example.line(.json) == #"""
                {"time":"2026-11-21T05:16:44.123Z","client":"192.0.2.1","method":"GET","host":"example.org","target":"/a?b=c",\#
                "protocol":"HTTP/1.1","status":200,"bytes":1024,"duration":0.001234,"ttfb":0.000250,\#
                "verdict":"miss","role":"led","operation":42,"detail":"too-large","upstream":"[::1]:80","upstream_status":206,\#
                "upstream_duration":2.120000,"referer":"http://example.org/","user_agent":"curl/8.0","aborted":true}

                """#)
    }

    @Test func `a JSON line omits missing values`() {
        #expect(
            Example().line(.json) == #"""
                {"time":"2026-11-21T05:16:44.123Z","client":"192.0.2.1","method":"GET","host":"example.org","target":"/a?b=c",\#
                "protocol":"HTTP/1.1","status":200,"bytes":1024,"duration":0.001234,"ttfb":0.000250,"verdict":"hit","role":"none"}

                """#)
    }

    @Test func `in a combined line, the detail comes before the mark of an aborted response`() {
        let line = Example {
            $0.detail = Array("no-store".utf8)
            $0.record.isAborted = true
        }.line(.combined)
        #expect(line.hasSuffix(" upstream_time=- detail=no-store aborted\n"))
    }

    @Test func `the identifier of a request stands behind the rest, before the marks`() {
        let example = Example {
            $0.requestID = Array("a.B_3-".utf8)
            $0.userAgent = Array("curl/8.0".utf8)
            $0.record.isAborted = true
        }
        #expect(example.line(.combined).hasSuffix(" upstream_time=- request_id=a.B_3- aborted\n"))
        #expect(example.line(.json).hasSuffix(#""user_agent":"curl/8.0","request_id":"a.B_3-","aborted":true}"# + "\n"))
        let longest = Example { $0.requestID = [UInt8](repeating: 0x61, count: 128) }.line(.json)
        #expect(longest.contains(String(repeating: "a", count: 128)))
    }

    @Test func `each record has its own identifier, or none, and one that does not fit is left out`() {
        let loop = LogLoop(AccessLogQueue(capacity: 400))
        Example { $0.requestID = Array("one".utf8) }.append(to: loop)
        Example().append(to: loop)
        Example { $0.requestID = [UInt8](repeating: 0x61, count: 128) }.append(to: loop)
        #expect(loop.batch.count == 3 && loop.batch.used <= 400)
        var formatter = AccessLogFormatter(format: .json)
        let output = ByteBuffer(capacity: 256)
        for index in 0..<3 { formatter.append(loop.batch, at: index, to: output) }
        #expect(text(output).split(separator: "request_id").count == 2)
    }

    @Test func `what a handshake has agreed on stands behind the identifier, and the name only if there is one`() {
        let example = Example {
            $0.requestID = Array("7".utf8)
            $0.security = Array("TLSv1.3 TLS_AES_128_GCM_SHA256 a.example".utf8)
            $0.record.isAborted = true
        }
        #expect(
            example.line(.combined).hasSuffix(
                " request_id=7 tls_version=TLSv1.3 tls_cipher=TLS_AES_128_GCM_SHA256 sni=a.example aborted\n"))
        #expect(
            example.line(.json).hasSuffix(
                #""request_id":"7","tls_version":"TLSv1.3","tls_cipher":"TLS_AES_128_GCM_SHA256","sni":"a.example","aborted":true}"#
                    + "\n"))
        let nameless = Example { $0.security = Array("TLSv1.2 c ".utf8) }
        #expect(nameless.line(.combined).hasSuffix(" tls_version=TLSv1.2 tls_cipher=c sni=-\n"))
        #expect(nameless.line(.json).hasSuffix(#""tls_version":"TLSv1.2","tls_cipher":"c"}"# + "\n"))
        let bytes = AccessLogSecurity.bytes(version: "TLSv1.2", cipher: "c", name: "")
        #expect(String(bytes) == "TLSv1.2 c ")
    }

    @Test(arguments: AccessLogFormat.allCases)
    func `a name in a handshake cannot end the line, and a long one is clipped`(format: AccessLogFormat) {
        let all = (0...255).map { UInt8($0) }
        let line = Example { $0.security = Array("TLSv1.2 c ".utf8) + all }.line(format)
        #expect(line.utf8.filter { $0 < 0x20 || $0 == 0x7F } == [UInt8(ascii: "\n")])
        #expect(line.utf8.last == UInt8(ascii: "\n") && line.contains("clipped"))
        let whole = Example { $0.security = Array("TLSv1.2 c ".utf8) + [UInt8](repeating: 0x61, count: 245) }
        #expect(!whole.line(format).contains("clipped"))
    }

    @Test func `each record has its own handshake, or none, and one that does not fit is left out`() {
        let loop = LogLoop(AccessLogQueue(capacity: 400))
        Example { $0.security = Array("TLSv1.3 one a".utf8) }.append(to: loop)
        Example().append(to: loop)
        Example { $0.security = Array("TLSv1.3 two ".utf8) + [UInt8](repeating: 0x61, count: 128) }.append(to: loop)
        #expect(loop.batch.count == 3 && loop.batch.used <= 400)
        var formatter = AccessLogFormatter(format: .json)
        let output = ByteBuffer(capacity: 256)
        for index in 0..<3 { formatter.append(loop.batch, at: index, to: output) }
        #expect(text(output).split(separator: "tls_cipher").count == 2)
    }

    @Test(arguments: AccessLogFormat.allCases)
    func `a text over its limit is clipped, and the line shows this`(format: AccessLogFormat) {
        let line = Example { $0.target = [UInt8](repeating: UInt8(ascii: "a"), count: 2049) }.line(format)
        #expect(line.contains(String(repeating: "a", count: 2048)))
        #expect(!line.contains(String(repeating: "a", count: 2049)))
        #expect(line.contains("clipped"))
        let fitting = Example { $0.target = [UInt8](repeating: UInt8(ascii: "a"), count: 2048) }.line(format)
        #expect(!fitting.contains("clipped"))
    }

    @Test(arguments: AccessLogFormat.allCases)
    func `no byte of a request can end the line`(format: AccessLogFormat) {
        let all = (0...255).map { UInt8($0) }
        let line = Example {
            ($0.client, $0.method, $0.host, $0.target) = (all, all, all, all)
            ($0.referer, $0.userAgent, $0.upstream) = (all, all, all)
        }.line(format)
        #expect(line.utf8.filter { $0 < 0x20 || $0 == 0x7F } == [UInt8(ascii: "\n")])
        #expect(line.utf8.last == UInt8(ascii: "\n"))
    }
}
