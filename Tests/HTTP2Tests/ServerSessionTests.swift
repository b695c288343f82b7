import Bytes
import Testing

@testable import HTTP2

/// One connection in memory: frames made by hand, and what the session makes of them.
@Suite struct ServerSessionTests {
    /// A frame (RFC 9113 §4.1).
    struct Frame: Equatable {
        var type: UInt8
        var flags: UInt8 = 0
        var stream: UInt32 = 0
        var payload: [UInt8] = []

        static let endStream: UInt8 = 1
        static let endHeaders: UInt8 = 4

        var bytes: [UInt8] {
            let count = payload.count
            return [UInt8(count >> 16), UInt8(count >> 8 & 255), UInt8(count & 255), type, flags]
                + (0..<4).map { UInt8(stream >> (24 - 8 * UInt32($0)) & 255) } + payload
        }

        /// A field section without indices and Huffman codes (RFC 7541 §6.2.2).
        static func headers(_ stream: UInt32, _ fields: [(String, String)], flags: UInt8 = endStream | endHeaders)
            -> Frame
        {
            var payload: [UInt8] = []
            for (name, value) in fields {
                payload += [0, UInt8(name.utf8.count)] + Array(name.utf8)
                payload += [UInt8(value.utf8.count)] + Array(value.utf8)
            }
            return Frame(type: 1, flags: flags, stream: stream, payload: payload)
        }

        static func get(_ stream: UInt32, _ path: String = "/") -> Frame {
            headers(
                stream, [(":method", "GET"), (":scheme", "http"), (":authority", "a.example"), (":path", path)])
        }

        static func all(in bytes: [UInt8]) -> [Frame] {
            var (frames, rest) = ([Frame](), bytes[...])
            while rest.count >= 9 {
                let head = Array(rest.prefix(9))
                let count = Int(head[0]) << 16 | Int(head[1]) << 8 | Int(head[2])
                let stream = head[5...].reduce(0) { $0 << 8 | UInt32($1) }
                rest = rest.dropFirst(9)
                frames.append(Frame(type: head[3], flags: head[4], stream: stream, payload: Array(rest.prefix(count))))
                rest = rest.dropFirst(count)
            }
            return frames
        }
    }

    static func text(_ bytes: Span<UInt8>) -> String {
        String(decoding: Self.array(bytes), as: UTF8.self)
    }

    static func array(_ bytes: Span<UInt8>) -> [UInt8] { (0..<bytes.count).map { bytes[$0] } }

    /// Answers with `body`, of which `available` bytes are there.
    final class Stream: ServerStream {
        unowned let session: Session
        var head = ""
        var received = ""
        var trailers = ""
        var isComplete = false
        var code: UInt32?
        var body = ByteSlice("")
        var sent = 0
        var available = 0
        var isWhole = true

        init(_ id: Int32, _ session: Session) {
            self.session = session
            super.init(id: id)
        }

        override func headIsComplete(_ head: Span<UInt8>, hasContent: Bool) {
            self.head = ServerSessionTests.text(head)
        }
        override func received(_ content: Span<UInt8>) {
            received += ServerSessionTests.text(content)
            session.consumed(content.count, of: id)
        }
        override func trailersCame(_ text: Span<UInt8>) { trailers = ServerSessionTests.text(text) }
        override func contentEnded() { isComplete = true }
        override func closed(_ code: UInt32) { self.code = code }
        override func content(most: Int) -> Content {
            let count = min(most, available - sent)
            return Content(count: count, isLast: isWhole && sent + count == body.count)
        }
        override func take(_ count: Int, into output: FrameOutput) {
            output.append(body[sent..<sent + count])
            sent += count
        }

        func answer(_ body: String, available: Int? = nil) {
            self.body = ByteSlice(body)
            self.available = available ?? self.body.count
            isWhole = available == nil
            let fields = FieldList()
            fields.append(ByteSlice(":status").span, ByteSlice("200").span)
            fields.append("content-length", decimal: UInt64(self.body.count))
            let isSubmitted = session.submit(fields, for: id, hasContent: true)
            #expect(isSubmitted)
        }
    }

    final class Session: ServerSession {
        var streams: [Int32: Stream] = [:]
        var tooMany: [PeerEvent] = []
        var mostHeads = Int.max
        let output = FrameOutput()

        override func makeStream(_ id: Int32) -> ServerStream? {
            let made = Stream(id, self)
            streams[id] = made
            return made
        }
        override func tooOften(_ event: PeerEvent) { tooMany.append(event) }
        override var takesMore: Bool { streams.values.count { !$0.head.isEmpty } < mostHeads }

        func take(_ frames: [Frame], at now: Int64 = 0, withPreface: Bool = false) -> Bool {
            let preface = withPreface ? Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) + Frame(type: 4).bytes : []
            return receive((preface + frames.flatMap(\.bytes)).span, at: now) != nil
        }

        /// The frames that are to be sent.
        func frames(most: Int = 1 << 20) -> [Frame] {
            let hasMemory = write(to: output, most: most)
            #expect(hasMemory)
            var bytes: [UInt8] = []
            for piece in output.pieces { bytes += ServerSessionTests.array(piece.span) }
            let last = output.last
            bytes += ServerSessionTests.array(last.span)
            output.consume(output.count)
            return Frame.all(in: bytes)
        }
    }

    private func session(_ limits: ServerSession.Limits = .init()) throws -> Session {
        let made = try #require(Session(limits, isSecure: false, SessionMemory(), at: 0))
        #expect(made.take([], withPreface: true))
        _ = made.frames()
        // The acknowledgement of its settings.
        #expect(made.take([Frame(type: 4, flags: 1)]))
        return made
    }

    @Test func `a request is its head in HTTP 1_1, and its response HEADERS and DATA`() throws {
        let session = try session()
        #expect(session.take([.get(1, "/x")]))
        let stream = try #require(session.streams[1])
        #expect(stream.head == "GET /x HTTP/1.1\r\nhost: a.example\r\n\r\n" && stream.isComplete)
        stream.answer("hello")
        let frames = session.frames()
        #expect(frames.map(\.type) == [1, 0] && frames.map(\.stream) == [1, 1])
        #expect(frames.last?.payload == Array("hello".utf8) && frames.last?.flags == Frame.endStream)
        #expect(stream.code == 0)
    }

    @Test func `a large body goes from its own memory, and one that is not there yet is asked for again`() throws {
        let session = try session()
        #expect(session.take([.get(1), .get(3)]))
        let text = String(repeating: "a", count: 20_000)
        session.streams[1]?.answer(text, available: 10_000)
        session.streams[3]?.answer("b")
        let first = session.frames()
        #expect(first.filter { $0.type == 0 && $0.stream == 1 }.map(\.payload.count).reduce(0, +) == 10_000)
        #expect(first.contains { $0.type == 0 && $0.stream == 3 && $0.flags == Frame.endStream })
        #expect(session.frames().isEmpty)
        session.streams[1]?.available = 20_000
        session.streams[1]?.isWhole = true
        session.resume(1)
        let rest = session.frames()
        #expect(rest.map(\.payload.count).reduce(0, +) == 10_000 && rest.last?.flags == Frame.endStream)
    }

    @Test func `content goes to its stream, and its memory is given back to the peer`() throws {
        var limits = ServerSession.Limits()
        limits.streamWindow = 1000
        let session = try session(limits)
        let post = [(":method", "POST"), (":scheme", "http"), (":authority", "a"), (":path", "/")]
        #expect(session.take([.headers(1, post, flags: Frame.endHeaders)]))
        for _ in 0..<20 {
            #expect(session.take([Frame(type: 0, stream: 1, payload: Array(repeating: 0x61, count: 900))]))
            #expect(session.frames().contains { $0.type == 8 && $0.stream == 1 })
        }
        #expect(session.take([Frame(type: 0, flags: Frame.endStream, stream: 1, payload: [0x62])]))
        let stream = try #require(session.streams[1])
        #expect(stream.received.count == 18_001 && stream.isComplete)
        #expect(stream.head.hasSuffix("transfer-encoding: chunked\r\n\r\n"))
    }

    @Test func `trailers are the end of chunked content, and a pseudo-header field in them resets the stream`() throws {
        let session = try session()
        let post = [(":method", "POST"), (":scheme", "http"), (":authority", "a"), (":path", "/")]
        for stream: UInt32 in [1, 3] { #expect(session.take([.headers(stream, post, flags: Frame.endHeaders)])) }
        #expect(session.take([.headers(1, [("x-sum", "7")]), .headers(3, [(":path", "/x")])]))
        let stream = try #require(session.streams[1])
        #expect(stream.trailers == "0\r\nx-sum: 7\r\n\r\n" && stream.isComplete)
        #expect(session.streams[3]?.trailers == "" && session.streams[3]?.isComplete == false)
        #expect(session.frames().contains { $0.type == 3 && $0.stream == 3 && $0.payload == [0, 0, 0, 1] })
    }

    @Test(arguments: [
        ("x", "a\r\nb"), ("x", "a\0"), ("X-Upper", "1"), ("x y", "1"), ("connection", "close"), ("te", "gzip"),
    ])
    func `a field that HTTP2 forbids is not left out: it resets its stream`(_ name: String, _ value: String) throws {
        let session = try session()
        let fields = [(":method", "GET"), (":scheme", "http"), (":authority", "a"), (":path", "/"), (name, value)]
        #expect(session.take([.headers(1, fields), .get(3)]))
        #expect(session.streams[1]?.head == "" && session.streams[3]?.head.hasPrefix("GET / ") == true)
        #expect(session.frames().contains { $0.type == 3 && $0.stream == 1 && $0.payload == [0, 0, 0, 1] })
    }

    @Test func `WINDOW_UPDATE frames that the content sent accounts for are no flood`() throws {
        var limits = ServerSession.Limits()
        limits.streams = 1000
        let session = try session(limits)
        let update = { (stream: UInt32) in Frame(type: 8, stream: stream, payload: [0, 0, 64, 0]) }
        // Room for all: the connection's window is 64 KiB at first.
        #expect(session.take([Frame(type: 8, payload: [0x10, 0, 0, 0])]))
        for number in 0..<100 {
            let stream = UInt32(1 + 2 * number)
            #expect(session.take([.get(stream)]))
            session.streams[Int32(stream)]?.answer(String(repeating: "a", count: 500_000))
            for _ in 0..<40 {
                _ = session.frames()
                #expect(session.take([update(stream), update(0)]))
            }
        }
        #expect(session.tooMany.isEmpty)
    }

    @Test(arguments: [9, 10, 1 << 20])
    func `requests that are to wait are taken later, each once`(_ piece: Int) throws {
        let session = try session()
        // A PING, which is no request, and a reset among them.
        let frames = (0..<20).flatMap { number -> [Frame] in
            let stream = UInt32(1 + 2 * number)
            return [.get(stream, "/\(number)"), Frame(type: 6, payload: [0, 0, 0, 0, 0, 0, 0, UInt8(number)])]
        }
        var rest = ArraySlice((frames + [Frame(type: 3, stream: 39, payload: [0, 0, 0, 8])]).flatMap(\.bytes))
        var heads: [Int] = []
        while !rest.isEmpty {
            let before = session.streams.values.count { !$0.head.isEmpty }
            session.mostHeads = before + 4
            let next = Array(rest.prefix(piece))
            let taken = session.receive(next.span, at: 0)
            rest = rest.dropFirst(try #require(taken))
            heads.append(session.streams.values.count { !$0.head.isEmpty } - before)
        }
        #expect(heads.allSatisfy { $0 <= 8 } && heads.reduce(0, +) == 20, "\(heads)")
        for number in 0..<20 {
            #expect(session.streams[Int32(1 + 2 * number)]?.head.hasPrefix("GET /\(number) ") == true)
        }
        #expect(session.streams[39]?.code == 8)
        #expect(session.frames().filter { $0.type == 6 }.map(\.payload.last) == (0..<20).map { UInt8($0) })
    }

    @Test func `an abandoned session calls no stream any more`() throws {
        let session = try session()
        #expect(
            session.take([
                .headers(1, [(":method", "POST"), (":scheme", "http"), (":authority", "a"), (":path", "/")], flags: 4)
            ]))
        session.abandon()
        let goesOn = session.take([Frame(type: 0, stream: 1, payload: [1]), .get(3)])
        #expect(!goesOn && session.streams[1]?.received == "" && session.streams[3] == nil)
    }

    @Test func `a malformed request is reset, and others go on`() throws {
        let session = try session()
        let wrong = [(":method", "GET"), (":scheme", "http"), (":authority", "a"), (":path", "/a b")]
        #expect(session.take([.headers(1, wrong), .get(3)]))
        #expect(session.streams[1]?.head == "" && session.streams[3]?.head.hasPrefix("GET / ") == true)
        let reset = session.frames().first { $0.type == 3 }
        #expect(reset?.stream == 1 && reset?.payload == [0, 0, 0, 1])
    }

    @Test(arguments: [
        // Rapid reset, PING, SETTINGS, PRIORITY, empty DATA.
        (PeerEvent.resetByPeer, 300), (.acknowledged, 300), (.priority, 2000), (.empty, 3000), (.resetByUs, 300),
    ])
    func `a flood ends the connection with ENHANCE_YOUR_CALM`(_ event: PeerEvent, _ count: Int) throws {
        let session = try session()
        let post = [(":method", "POST"), (":scheme", "http"), (":authority", "a"), (":path", "/")]
        if event == .empty { #expect(session.take([.headers(1, post, flags: Frame.endHeaders)])) }
        var frames: [Frame] = []
        for number in 0..<count {
            let stream = UInt32(1 + 2 * number)
            switch event {
            case .resetByPeer:
                #expect(session.tooMany.isEmpty || number > 50)
                if !session.take([.get(stream), Frame(type: 3, stream: stream, payload: [0, 0, 0, 8])]) { break }
            case .resetByUs:
                let wrong = [(":method", "GET"), (":scheme", "http"), (":authority", "a"), (":path", "/a b")]
                if !session.take([.headers(stream, wrong)]) { break }
            case .acknowledged:
                if !session.take([Frame(type: 6, payload: Array(repeating: 0, count: 8))]) { break }
            case .priority:
                if !session.take([Frame(type: 2, stream: 1, payload: [0, 0, 0, 0, 1])]) { break }
            case .empty:
                if !session.take([Frame(type: 0, stream: 1)]) { break }
            case .refused, .fields: break
            }
            frames += session.frames()
        }
        #expect(session.tooMany.first == event)
        let goAway = try #require(frames.last { $0.type == 7 })
        #expect(Array(goAway.payload[4..<8]) == [0, 0, 0, 11])
        #expect(session.isOver)
    }

    @Test(arguments: [
        ([Frame(type: 0, stream: 1, payload: [1])], 5), ([Frame.get(1)], 5), ([.get(7), .get(5)], 5),
        ([Frame(type: 2, payload: [0, 0, 0, 0, 1])], 1),
    ])
    func `a frame for a stream that the peer has ended, and a PRIORITY for none, end the connection`(
        _ frames: [Frame], _ code: Int
    ) throws {
        let session = try session()
        #expect(session.take([.get(1)]))
        session.streams[1]?.answer("a")
        _ = session.frames()
        #expect(!session.take(frames))
        #expect(session.frames().last { $0.type == 7 }?.payload[7] == UInt8(code))
    }

    @Test func `frames on their way to a stream that was reset here are no error, and are counted`() throws {
        let session = try session()
        let post = [(":method", "POST"), (":scheme", "http"), (":authority", "a"), (":path", "/a b")]
        #expect(session.take([.headers(1, post, flags: Frame.endHeaders)]))
        _ = session.frames()
        let data = Frame(type: 0, stream: 1, payload: [1])
        #expect(session.take(Array(repeating: data, count: 900)))
        #expect(session.tooMany.isEmpty)
        #expect(!session.take(Array(repeating: data, count: 200)))
        #expect(session.tooMany.first == .empty)
    }

    @Test func `a flood of frames of unknown type is counted, although nghttp2 says nothing of them`() throws {
        let session = try session()
        #expect(!session.take(Array(repeating: Frame(type: 0xEE, stream: 1), count: 1000)))
        #expect(session.tooMany.first == .priority)
    }

    @Test func `a section that is too large is told of, and not kept`() throws {
        let session = try session()
        let fields = [(":method", "GET"), (":scheme", "http"), (":authority", "a"), (":path", "/")]
        let many = (0..<101).map { ("x\($0)", "1") }
        #expect(session.take([.headers(1, fields + many)]))
        #expect(session.streams[1]?.head == "")
        #expect(session.tooMany.isEmpty)
    }

    @Test func `a section that is many times too large ends the connection before its end`() throws {
        let session = try session()
        let fields = [(":method", "GET"), (":scheme", "http"), (":authority", "a"), (":path", "/")]
        // A line with indexing (RFC 7541 §6.2.1), and a thousand references to it.
        let head = Frame.headers(1, fields, flags: Frame.endStream).payload
        let bomb = [UInt8(0x40), 1, 0x78, 100] + Array(repeating: UInt8(0x79), count: 100)
        let whole = head + bomb + Array(repeating: UInt8(0x80 | 62), count: 1000)
        #expect(!session.take([Frame(type: 1, flags: 5, stream: 1, payload: whole), .get(3)]))
        #expect(session.tooMany == [.fields] && session.streams[3] == nil)
        #expect(session.frames().last { $0.type == 7 }?.payload[7] == 11)
    }

    @Test func `DATA of padding alone is counted`() throws {
        let session = try session()
        let post = [(":method", "POST"), (":scheme", "http"), (":authority", "a"), (":path", "/")]
        #expect(session.take([.headers(1, post, flags: Frame.endHeaders)]))
        let padded = Frame(type: 0, flags: 8, stream: 1, payload: [0])
        #expect(!session.take(Array(repeating: padded, count: 3000)))
        #expect(session.tooMany.first == .empty)
    }

    @Test func `after GOAWAY the streams that are open are answered, and no other one is taken`() throws {
        let session = try session()
        #expect(session.take([.get(1)]))
        session.goAway()
        #expect(session.frames().map(\.type) == [7])
        _ = session.take([.get(3)])
        #expect(session.streams[3] == nil)
        session.streams[1]?.answer("late")
        #expect(session.frames().map(\.type) == [1, 0])
        #expect(session.isOver)
    }
}
