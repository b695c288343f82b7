import Bytes
import HTTPSemantics
import Testing

@testable import Upstream

/// What the reader makes of a connection's bytes, as transcripts: the same however the bytes are cut.
@Suite struct ResponseReaderTests {
    struct Row: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let method: Method
        /// What the origin sends, after which the connection ends.
        let input: String
        let expected: String

        init(_ what: String, to method: Method = .get, _ input: String, _ expected: String) {
            testDescription = what
            self.method = method
            self.input = input
            self.expected = expected
        }
    }

    private static let ok = "HTTP/1.1 200 OK\r\n"
    private static let hints = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"

    /// Of one response, with `piece` bytes more at a time; then the connection ends.
    private func transcript(_ row: Row, piece: Int) -> String {
        var reader = ResponseReader(maxHeadSize: 200)
        reader.begin(answering: row.method)
        let input = Array(row.input.utf8)
        var (events, content, here, arrived) = ([String](), "", [UInt8](), 0)
        func say(_ event: String) {
            if !content.isEmpty { events.append("body \(content)") }
            content = ""
            events.append(event)
        }
        reading: while true {
            let event: ResponseReader.Event
            do throws(MessageSyntaxError) {
                event = try reader.next(in: here.span)
            } catch {
                say("error \(error.name)")
                break
            }
            switch event {
            case .needMore:
                guard arrived < input.count else {
                    say("\(reader.endOfStream())")
                    break reading
                }
                let next = min(arrived + piece, input.count)
                here += input[arrived..<next]
                arrived = next
            case .interim(let length):
                say("interim \(reader.head(in: here.span).head.status.code)")
                here.removeFirst(length)
            case .switched(let length):
                say("switched")
                here.removeFirst(length)
                break reading
            case .head(let length):
                say("head \(reader.head(in: here.span).head.status.code)")
                here.removeFirst(length)
            case .body(let range, let consumed, let isLast):
                content += String(decoding: here[range], as: UTF8.self)
                here.removeFirst(consumed)
                if isLast, !reader.hasEnded { say("last, but not the end") }
            case .end(let trailers, let consumed):
                here.removeFirst(consumed)
                say(trailers.map { "end with \(String($0.span))" } ?? "end")
                break reading
            }
            if reader.hasTooManyInterim {
                say("too many")
                break
            }
        }
        let rest = here.count + input.count - arrived
        return (events + (reader.keepsAlive ? ["kept"] : []) + (rest > 0 && reader.hasEnded ? ["\(rest) left"] : []))
            .joined(separator: ", ")
    }

    @Test(arguments: [
        Row("a length", "\(ok)Content-Length: 3\r\n\r\nabc", "head 200, body abc, end, kept"),
        Row("no content", "HTTP/1.1 204 No Content\r\n\r\n", "head 204, end, kept"),
        Row("a length of nothing", "\(ok)Content-Length: 0\r\n\r\n", "head 200, end, kept"),
        Row("an answer to HEAD has no body", to: .head, "\(ok)Content-Length: 3\r\n\r\n", "head 200, end, kept"),
        Row(
            "chunks", "\(ok)Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n2;x=y\r\nbc\r\n0\r\n\r\n",
            "head 200, body abc, end, kept"),
        Row(
            "trailers", "\(ok)Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX-Sum: 7\r\n\r\n",
            "head 200, body a, end with X-Sum: 7\r\n, kept"),
        Row(
            "trailers of which none goes on", "\(ok)Transfer-Encoding: chunked\r\n\r\n0\r\nHost: a\r\n\r\n",
            "head 200, end, kept"),
        Row("up to the connection's end", "\(ok)\r\nabc", "head 200, body abc, complete"),
        Row("close", "\(ok)Connection: close\r\nContent-Length: 1\r\n\r\na", "head 200, body a, end"),
        Row("an old version", "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\na", "head 200, body a, end"),
        Row(
            "interim responses come before the final one",
            "\(hints)HTTP/1.1 100 Continue\r\n\r\n\(ok)Content-Length: 1\r\n\r\na",
            "interim 103, interim 100, head 200, body a, end, kept"),
        Row(
            "more than 64 interim responses are too many", String(repeating: hints, count: 65),
            String(repeating: "interim 103, ", count: 65) + "too many"),
        Row("another protocol", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: a\r\n\r\nabc", "switched"),
        Row(
            "what follows a response is not read", "\(ok)Content-Length: 1\r\n\r\naHTTP/1.1",
            "head 200, body a, end, kept, 8 left"),
    ])
    func `a response is read to its end`(_ row: Row) { hold(row) }

    @Test(arguments: [
        Row("before anything", "", "beforeHead"),
        Row("in a head", "HTTP/1.1 200 OK\r\nContent-Le", "beforeHead"),
        Row("after an interim response", hints, "interim 103, beforeHead"),
        Row("in a body of known length", "\(ok)Content-Length: 3\r\n\r\nab", "head 200, body ab, truncated"),
        Row("before a body of known length", "\(ok)Content-Length: 3\r\n\r\n", "head 200, truncated"),
        Row("in a chunk", "\(ok)Transfer-Encoding: chunked\r\n\r\n3\r\nab", "head 200, body ab, truncated"),
        Row(
            "before the last chunk", "\(ok)Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n",
            "head 200, body ab, truncated"),
        Row("in the trailers", "\(ok)Transfer-Encoding: chunked\r\n\r\n0\r\nX-Sum: 7\r\n", "head 200, truncated"),
    ])
    func `a connection that ends early is reported`(_ row: Row) { hold(row) }

    @Test(arguments: [
        Row("no HTTP", "SSH-2.0\r\n", "error malformed-status-line"),
        Row("a field without a name", "\(ok): a\r\n\r\n", "error field-name-invalid"),
        Row("two lengths", "\(ok)Content-Length: 3\r\nContent-Length: 4\r\n\r\n", "error content-length-repeated"),
        Row(
            "a length and chunks", "\(ok)Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
            "error content-length-with-transfer-encoding"),
        Row(
            "a head larger than is allowed", "\(ok)X: \(String(repeating: "x", count: 200))\r\n\r\n",
            "error head-too-large"),
        Row("the second of two heads", "\(hints)HTTP/2 200\r\n", "interim 103, error malformed-status-line"),
        Row("no chunk", "\(ok)Transfer-Encoding: chunked\r\n\r\nxyz\r\n", "head 200, error chunk-size-invalid"),
        Row(
            "a chunk longer than it says", "\(ok)Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n",
            "head 200, body a, error chunk-end-missing"),
    ])
    func `bytes that are no response are reported`(_ row: Row) { hold(row) }

    private func hold(_ row: Row) {
        for piece in [1, 7, .max / 2] {
            let transcript = transcript(row, piece: piece)
            #expect(transcript == row.expected, "\(piece) at a time")
        }
    }

    @Test(
        arguments: [
            ("\(ok)Content-Length: 3\r\n\r\nabcd", "abc"), ("\(ok)Content-Length: 3\r\n\r\nab", nil),
            ("\(ok)Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n", nil), ("\(ok)\r\nabc", nil),
            ("HTTP/1.1 304 Not Modified\r\n\r\n", ""),
            ("HTTP/1.1 101 Switching Protocols\r\nUpgrade: a\r\n\r\nabc", "abc"),
        ] as [(String, String?)])
    func `a head comes with content that has arrived whole, and a 101 with all bytes that follow`(
        _ input: String, _ expected: String?
    ) throws {
        var reader = ResponseReader(maxHeadSize: 200)
        reader.begin(answering: .get)
        let bytes = Array(input.utf8)
        let event = try reader.next(in: bytes.span)
        let isHead =
            switch event {
            case .head, .switched: true
            case .needMore, .interim, .body, .end: false
            }
        let content: String? = if let content = reader.head(in: bytes.span).content { String(content) } else { nil }
        #expect(isHead)
        #expect(content == expected)
    }

    @Test func `the reader takes one response after another`() throws {
        var reader = ResponseReader(maxHeadSize: 200)
        let bytes = Array("HTTP/1.1 204 No Content\r\n\r\n".utf8)
        var ends: [Bool] = []
        for _ in 0..<3 {
            ends.append(reader.hasEnded)
            reader.begin(answering: .get)
            ends.append(reader.hasEnded)
            _ = try reader.next(in: bytes.span)
            // The end of what has no body is told once the head was dealt with.
            _ = try reader.next(in: [UInt8]().span)
        }
        #expect(ends == [true, false, true, false, true, false])
    }
}
