import Bytes
import Glibc
import HTTPSemantics
import Libevent
import LoopTesting
import RouteTesting
import Storage
import Testing

@testable import Proxy

/// A response reaches its client byte for byte, wherever the kernel stops taking it; and where its body breaks off, no
/// clean end is sent.
@Suite(.timeLimit(.minutes(10))) struct DeliveryTests {
    // MARK: What is delivered

    private static let budget = MemoryBudget(limit: 16 << 20)
    private static let head = "HTTP/1.1 200 OK\r\n\r\n"
    /// Field lines, as a body keeps its trailers.
    private static let trailers = ByteSlice("Digest: x\r\n")

    private static func body(_ text: String = "") -> GrowingBody {
        let body = GrowingBody(budget: budget)
        grow(body, text)
        return body
    }

    private static func grow(_ body: GrowingBody, _ text: String) {
        let result = body.append(ByteSlice(text).span)
        #expect(result == .accepted)
    }

    private static func arriving(_ body: GrowingBody, part: Range<Int>? = nil) throws -> Delivery.Source {
        .arriving(body, try #require(body.attach()), part: part)
    }

    /// A stored body of these pieces.
    private static func stored(_ pieces: String..., part: Range<Int>? = nil) -> Delivery.Source {
        let length = pieces.reduce(0) { $0 + $1.utf8.count }
        return .complete(CompleteBodyReader(ShortList(pieces.map { ByteSlice($0) }), part: part ?? 0..<length))
    }

    /// - Parameter room: beyond the head, in the buffer that it stands in: a small body is copied there if it fits.
    private static func delivery(
        _ sources: Delivery.Source..., framing: Delivery.Framing, passesTrailers: Bool = false, head: String = head,
        room: Int = 0
    ) -> Delivery {
        delivery(
            of: sources.count == 1 ? .one(sources[0]) : .row(sources), framing: framing, passesTrailers: passesTrailers,
            head: head, room: room)
    }

    private static func delivery(
        of sources: Delivery.Sources, framing: Delivery.Framing, passesTrailers: Bool = false, head: String, room: Int
    ) -> Delivery {
        let bytes = ByteBuffer(capacity: head.utf8.count + room)
        bytes.append(string: head)
        return Delivery(head: bytes, sources, framing: framing, passesTrailers: passesTrailers)
    }

    /// One response, made anew for each way of cutting it.
    struct Course: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let start: @Sendable (_ head: String, _ room: Int) throws -> Delivery
        /// Of the body.
        let content: String
        /// The body as it is sent, if that is something else.
        var framed: String?
        var outcome = Delivery.Outcome.done

        func sent(after head: String) -> String { head + (framed ?? content) }
    }

    static let courses: [Course] = [
        Course(
            testDescription: "a stored body in pieces",
            start: { delivery(stored("one, ", "two, ", "three"), framing: .sized, head: $0, room: $1) },
            content: "one, two, three"),
        Course(
            testDescription: "a part of one",
            start: { delivery(stored("one, ", "two, ", "three", part: 3..<12), framing: .sized, head: $0, room: $1) },
            content: ", two, th"),
        Course(
            testDescription: "a stored body that is packed with its head",
            start: { delivery(of: .packed(packed("one, two, three")), framing: .sized, head: $0, room: $1) },
            content: "one, two, three"),
        Course(
            testDescription: "no body",
            start: { delivery(.none, framing: .sized, head: $0, room: $1) },
            content: ""),
        Course(
            testDescription: "several parts, all of them there",
            start: {
                delivery(
                    stored("one, "), try arriving(complete("x two, x"), part: 2..<7), stored("xthree", part: 1..<6),
                    framing: .sized, head: $0, room: $1)
            },
            content: "one, two, three"),
        Course(
            testDescription: "several parts, of which one is lost",
            start: {
                delivery(
                    stored("one, "), try arriving(complete("two, ")), .lost, stored("three"), framing: .sized, head: $0,
                    room: $1)
            },
            content: "one, two, ", outcome: .cutOff),
        Course(
            testDescription: "several parts, of which one breaks off",
            start: {
                delivery(
                    stored("one, "), try arriving(failed("two, "), part: 0..<9), stored("three"), framing: .sized,
                    head: $0, room: $1)
            },
            content: "one, two, ", outcome: .cutOff),
        Course(
            testDescription: "chunks",
            start: { delivery(try arriving(complete("one, two, three, four")), framing: .chunked, head: $0, room: $1) },
            content: "one, two, three, four", framed: "15\r\none, two, three, four\r\n0\r\n\r\n"),
        Course(
            testDescription: "chunks and trailers",
            start: {
                delivery(
                    try arriving(complete("one", trailers)), framing: .chunked, passesTrailers: true, head: $0, room: $1
                )
            },
            content: "one", framed: "3\r\none\r\n0\r\nDigest: x\r\n\r\n"),
        Course(
            testDescription: "chunks for a client that takes no trailers",
            start: { delivery(try arriving(complete("one", trailers)), framing: .chunked, head: $0, room: $1) },
            content: "one", framed: "3\r\none\r\n0\r\n\r\n"),
        Course(
            testDescription: "chunks without content",
            start: { delivery(try arriving(complete("")), framing: .chunked, head: $0, room: $1) },
            content: "", framed: "0\r\n\r\n"),
        Course(
            testDescription: "chunks that break off",
            start: { delivery(try arriving(failed("one, two")), framing: .chunked, head: $0, room: $1) },
            content: "one, two", framed: "8\r\none, two\r\n", outcome: .cutOff),
        Course(
            testDescription: "a body that ends with the connection",
            start: { delivery(try arriving(complete("one, two")), framing: .untilClose, head: $0, room: $1) },
            content: "one, two"),
        Course(
            testDescription: "one that breaks off",
            start: { delivery(try arriving(failed("one, two")), framing: .untilClose, head: $0, room: $1) },
            content: "one, two", outcome: .cutOff),
    ]

    private static func packed(_ text: String) -> StoredResponse {
        let head = block("Cache-Control: max-age=60")
        let facts = ResponseFacts(
            status: .ok, fields: head.view, requestTime: arrival, responseTime: arrival, policy: CachingPolicy())
        let (body, key) = (ByteSlice(text), [UInt8]())
        return StoredResponse(packing: head.bytes.span, body: body.span, under: key.span, facts: facts)
    }

    private static func complete(_ text: String, _ trailers: ByteSlice? = nil) -> GrowingBody {
        let body = body(text)
        body.complete(trailers: trailers)
        return body
    }

    private static func failed(_ text: String) -> GrowingBody {
        let body = body(text)
        body.fail()
        return body
    }

    // MARK: Every place

    @Test(arguments: courses) func `every byte is sent once if the kernel takes a few bytes at a time`(course: Course)
        throws
    {
        for step in 1...24 {
            let kernel = Kernel(step: step)
            let delivery = try course.start(Self.head, 0)
            let outcome = kernel.take(delivery)
            #expect(kernel.text == course.sent(after: Self.head), "\(step) bytes at a time")
            #expect(outcome == course.outcome)
            #expect(delivery.bodyBytesSent == course.content.utf8.count)
        }
    }

    /// The head is as long as it must be for the kernel to be full so many bytes behind it.
    @Test(arguments: courses) func `a socket that was full at any byte gets the rest once the client has read`(
        course: Course
    )
        throws
    {
        try onLoop { loop in
            let client = Client(on: loop)
            for room in [0, Delivery.copiedBody] {
                for taken in 0...course.sent(after: "").utf8.count {
                    let head = String(repeating: "h", count: client.capacity - taken)
                    let delivery = try course.start(head, room)
                    let outcome = client.receive(delivery)
                    #expect(outcome == course.outcome)
                    #expect(client.text == course.sent(after: head), "\(taken) bytes were taken of the body")
                    #expect(delivery.bodyBytesSent == course.content.utf8.count)
                }
            }
            loop.stop()
        }
    }

    @Test func `a body of many pieces arrives whole`() throws {
        try onLoop { loop in
            let client = Client(on: loop)
            // More pieces than one write gathers.
            let pieces = (0..<3 * GatherList.capacity).map { ByteSlice("piece \($0) ") }
            let reader = CompleteBodyReader(ShortList(pieces), part: 0..<pieces.reduce(0) { $0 + $1.count })
            let outcome = client.receive(Self.delivery(.complete(reader), framing: .sized))
            #expect(outcome == .done)
            #expect(client.text == Self.head + pieces.map { String($0) }.joined())
            loop.stop()
        }
    }

    @Test func `a client that has gone is noticed`() throws {
        try onLoop { loop in
            let (near, far) = socketPair(on: loop)
            far.close()
            var sent = 0
            let outcome = Self.delivery(Self.stored("one"), framing: .sized).pump(on: near, GatherList(), sent: &sent)
            #expect(outcome == .peerGone)
            #expect(sent == 0)
            loop.stop()
        }
    }

    // MARK: A body that grows

    @Test func `bytes that arrive while a chunk is half sent are in the next chunk`() throws {
        for step in 1...24 {
            let body = Self.body("one, ")
            var events = [{ Self.grow(body, "two, ") }, { Self.grow(body, "three") }, { body.complete() }]
            let kernel = Kernel(step: step)
            kernel.whenFull = { if !events.isEmpty { events.removeFirst()() } }
            let delivery = Self.delivery(try Self.arriving(body), framing: .chunked)
            var outcome = kernel.take(delivery)
            while outcome == .starved {
                try #require(!events.isEmpty)
                kernel.whenFull()
                outcome = kernel.take(delivery)
            }
            #expect(outcome == .done)
            let content = Self.withoutChunks(kernel.text.dropFirst(Self.head.count))
            #expect(content == "one, two, three", "\(step) bytes at a time")
        }
    }

    @Test func `a chunk is sent with its end, and with the last chunk if the end is known`() throws {
        let body = Self.body("one")
        let delivery = Self.delivery(try Self.arriving(body), framing: .chunked, passesTrailers: true)
        let kernel = Kernel(step: 1024)
        #expect(kernel.take(delivery) == .starved)
        Self.grow(body, "two")
        #expect(kernel.take(delivery) == .starved)
        #expect(kernel.take(delivery) == .starved, "there is nothing more")
        Self.grow(body, "three")
        body.complete(trailers: Self.trailers)
        #expect(kernel.take(delivery) == .done)
        #expect(
            kernel.writes == [
                Self.head + "3\r\none\r\n", "3\r\ntwo\r\n", "5\r\nthree\r\n0\r\nDigest: x\r\n\r\n",
            ])
        #expect(delivery.bodyBytesSent == 11)
    }

    @Test func `the last chunk is sent at once if the end comes later`() throws {
        let body = Self.body("one")
        let delivery = Self.delivery(try Self.arriving(body), framing: .chunked)
        let kernel = Kernel(step: 1024)
        #expect(kernel.take(delivery) == .starved)
        body.complete()
        #expect(kernel.take(delivery) == .done)
        #expect(kernel.writes == [Self.head + "3\r\none\r\n", "0\r\n\r\n"])
    }

    @Test func `a body that ends while a chunk is half sent gets its last chunk afterwards`() throws {
        // Wherever the kernel stopped: in the size, in the data, or in the chunk's end.
        for step in 1..<"3\r\none\r\n".utf8.count {
            let body = Self.body("one")
            let delivery = Self.delivery(try Self.arriving(body), framing: .chunked, head: "")
            let kernel = Kernel(step: step)
            kernel.whenFull = { if !kernel.writes.isEmpty { body.complete(trailers: Self.trailers) } }
            var outcome = kernel.take(delivery)
            if outcome == .starved {
                body.complete()
                outcome = kernel.take(delivery)
            }
            #expect(outcome == .done)
            #expect(kernel.text == "3\r\none\r\n0\r\n\r\n", "\(step) bytes at a time")
        }
    }

    /// The content of chunks without line ends in them; `nil` if they are not whole.
    private static func withoutChunks(_ text: Substring) -> String? {
        var lines = text.split(separator: "\r\n", omittingEmptySubsequences: false)
        guard lines.suffix(3) == ["0", "", ""] else { return nil }
        lines.removeLast(3)
        guard lines.count.isMultiple(of: 2) else { return nil }
        var content = ""
        for index in stride(from: 0, to: lines.count, by: 2) {
            guard Int(lines[index], radix: 16) == lines[index + 1].utf8.count else { return nil }
            content += lines[index + 1]
        }
        return content
    }

    @Test func `a delivery is starved until its body has more bytes, and then done`() throws {
        let body = Self.body()
        let delivery = Self.delivery(try Self.arriving(body), framing: .sized)
        let kernel = Kernel(step: 64)
        #expect(kernel.take(delivery) == .starved)
        #expect(delivery.followed === body)
        Self.grow(body, "one")
        #expect(kernel.take(delivery) == .starved)
        #expect(kernel.text == Self.head + "one")
        body.complete()
        #expect(kernel.take(delivery) == .done)
        #expect(kernel.text == Self.head + "one")
    }

    @Test func `a part is done when its bytes are sent, although the body goes on`() throws {
        let body = Self.body("0123")
        let delivery = Self.delivery(try Self.arriving(body, part: 2..<6), framing: .sized)
        let kernel = Kernel(step: 64)
        #expect(kernel.take(delivery) == .starved)
        #expect(kernel.text == Self.head + "23")
        Self.grow(body, "4567")
        #expect(kernel.take(delivery) == .done)
        #expect(kernel.text == Self.head + "2345")
    }

    @Test func `a client that leaves gives back its cursor in every body`() throws {
        let bodies = (0..<3).map { _ in Self.body("one") }
        for body in bodies { body.limit(toWindow: GrowingBody.smallestWindow) }
        let sources = try bodies.map { try Self.arriving($0) }
        let delivery = Self.delivery(sources[0], sources[1], sources[2], framing: .sized)
        // Of somebody else, who reads all of them.
        var others = try bodies.map { try #require($0.attach()) }
        let piece = [UInt8](repeating: 0x78, count: GrowingBody.smallestWindow)
        for index in bodies.indices {
            let result = bodies[index].append(piece.span)
            #expect(result == .acceptedAndFull)
            bodies[index].advance(&others[index], by: bodies[index].length)
            #expect(bodies[index].retained >= GrowingBody.smallestWindow, "the delivery has read nothing")
        }
        delivery.detach()
        for body in bodies { #expect(body.retained < GrowingBody.smallestWindow) }
    }
}

/// Takes `step` bytes of each offer, and nothing of every other.
private final class Kernel {
    let step: Int
    /// Called where it takes nothing.
    var whenFull: () -> Void = {}
    private(set) var text = ""
    /// What it took each time.
    private(set) var writes: [String] = []
    private var isFull = false
    private let list = GatherList()

    init(step: Int) { self.step = step }

    /// Pumps until no more of it goes out.
    func take(_ delivery: Delivery) -> Delivery.Outcome {
        while true {
            let before = text.utf8.count
            var sent = 0
            let outcome = delivery.pump(list, sent: &sent) { write($0) }
            #expect(sent == text.utf8.count - before)
            #expect(list.isEmpty, "what was offered is held no longer")
            if outcome != .blocked { return outcome }
        }
    }

    private func write(_ control: ByteBuffer?) -> WriteResult {
        isFull.toggle()
        if isFull {
            whenFull()
            return .wouldBlock
        }
        let offered = ByteBuffer(capacity: 256)
        if let control { offered.append(control.span) }
        list.copy(to: offered)
        offered.truncate(to: min(step, offered.count))
        text += String(offered.span)
        writes.append(String(offered.span))
        return .wrote(offered.count)
    }
}

/// Reads when the kernel takes no more for it.
private final class Client {
    /// What the kernel takes in one write before any of it is read.
    let capacity: Int
    private let near: TestSocket
    private let far: TestSocket
    private let list = GatherList()
    private let received = ByteBuffer(capacity: 8192)

    var text: String {
        let received = received
        return String(received.span)
    }

    init(on loop: EventLoop) {
        (near, far) = socketPair(on: loop, isNarrow: true)
        let more = [UInt8](repeating: 0, count: 1 << 20)
        let written = near.write(more.span)
        guard case .wrote(let count) = written else { preconditionFailure("the socket takes nothing") }
        capacity = count
        read()
    }

    /// Pumps and reads until no more of it goes out.
    func receive(_ delivery: Delivery) -> Delivery.Outcome {
        received.removeAll()
        var sent = 0
        var outcome = delivery.pump(on: near, list, sent: &sent)
        // As a connection does: the head was lent.
        delivery.keepHead()
        read()
        while outcome == .blocked {
            outcome = delivery.pump(on: near, list, sent: &sent)
            read()
        }
        #expect(sent == received.count)
        return outcome
    }

    private func read() {
        while case .bytes = far.read(into: received) {}
    }
}
