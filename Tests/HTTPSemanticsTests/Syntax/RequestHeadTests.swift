import HTTPSemantics
import Repeatable
import Testing

@Suite struct RequestHeadTests {
    private func check(_ table: [RequestCase]) {
        for row in table {
            let result = readRequest(wire(row.input))
            #expect(result.hasPrefix(row.expected), "\(row.input.debugDescription) gave \(result)")
        }
    }

    @Test func `a request line is method, target and version with single spaces`() { check(RequestTable.requestLines) }
    @Test func `a target has the form its method allows`() { check(RequestTable.targets) }
    @Test func `a field line is a token, a colon and visible text`() { check(RequestTable.fieldLines) }
    @Test func `a request names exactly one valid host`() { check(RequestTable.hosts) }
    @Test func `a request whose end can be read in two ways is refused`() { check(RequestTable.framing) }
    @Test func `connection options decide whether the connection persists`() { check(RequestTable.connections) }

    @Test func `an ignored Upgrade counts as absent`() {
        for row in RequestTable.connections {
            let message = wire(row.input)
            var parser = RequestHeadParser(limits: .roomy)
            guard case .complete? = try? parser.parse(message.span) else { continue }
            let isPresent = parser.view(in: message.span).contains(.upgrade)
            #expect(isPresent == parser.head.asksForUpgrade, "\(row.input.debugDescription)")
        }
    }

    @Test func `the verdict does not depend on how the bytes arrive`() {
        var generator = SeededGenerator(ofTest: 1)
        for row in RequestTable.all {
            let message = wire(row.input)
            let atOnce = readRequest(message)
            let byByte = readRequest(message, .byteByByte)
            #expect(byByte == atOnce, "\(row.input.debugDescription)")
            for _ in 0..<5 * Rounds.count where message.count > 1 {
                let delivery = Delivery.cut((0..<3).map { _ in Int.random(in: 1..<message.count, using: &generator) })
                let split = readRequest(message, delivery)
                #expect(split == atOnce, "\(row.input.debugDescription) \(delivery)")
            }
        }
    }

    @Test func `one parser reads request after request`() {
        var parser = RequestHeadParser(limits: .roomy)
        for row in RequestTable.all {
            let reused = readRequest(wire(row.input), .atOnce, &parser)
            let fresh = readRequest(wire(row.input))
            #expect(reused == fresh)
        }
    }

    private static let small = HeadLimits(maxHeadBytes: 200, maxFieldLines: 3, maxTargetLength: 20)

    /// Inputs around each limit; the answer must be the same before and after the line's end arrives.
    @Test(arguments: [
        ("GET /\(String(repeating: "a", count: 19)) HTTP/1.1\r\nHost: a\r\n\r\n", "GET /aaa"),
        ("GET /\(String(repeating: "a", count: 20)) HTTP/1.1\r\nHost: a\r\n\r\n", "414 target-too-long"),
        ("GET /\(String(repeating: "a", count: 90)) HTTP/1.1\r\nHost: a\r\n\r\n", "414 target-too-long"),
        ("GET /\(String(repeating: "a", count: 90))", "414 target-too-long"),
        ("GET / HTTP/1.1\r\nHost: a\r\nX: \(String(repeating: "a", count: 168))\r\n\r\n", "GET / http11"),
        ("GET / HTTP/1.1\r\nHost: a\r\nX: \(String(repeating: "a", count: 169))\r\n\r\n", "431 head-too-large @200"),
        (
            "GET / HTTP/1.1\r\nHost: a\r\nX: \(String(repeating: "\u{0}", count: 300))\r\n\r\n",
            "431 head-too-large @200"
        ),
        ("GET / HTTP/1.1\r\nHost: a\r\nX: \(String(repeating: "a", count: 300))", "431 head-too-large @200"),
        ("GET / HTTP/1.1\r\nHost: a\r\nA:\r\nB:\r\n\r\n", "GET / http11"),
        ("GET / HTTP/1.1\r\nHost: a\r\nA:\r\nB:\r\nC:\r\n\r\n", "431 too-many-fields @33"),
    ]) func `a head that exceeds a limit is refused`(input: String, expected: String) {
        for delivery in [Delivery.atOnce, .byteByByte, .cut([30, 100, 190])] {
            let result = readRequest(wire(input), delivery, limits: Self.small)
            #expect(result.hasPrefix(expected), "\(delivery): \(result)")
        }
    }

    @Test func `a smaller head limit applies before the target's limit`() {
        let limits = HeadLimits(maxHeadBytes: 20, maxFieldLines: 3, maxTargetLength: 20)
        for delivery in [Delivery.atOnce, .byteByByte] {
            let result = readRequest(
                wire("GET /\(String(repeating: "a", count: 99)) HTTP/1.1\r\n"), delivery, limits: limits)
            #expect(result == "431 head-too-large @20")
        }
    }

    @Test func `every reason has its own name and an error status`() {
        var names: Set<String> = []
        for reason in MessageSyntaxError.Reason.allCases {
            names.insert("\(reason.name)")
            #expect(reason.status.code >= 400)
            #expect(!"\(reason.explanation)".isEmpty)
        }
        #expect(names.count == MessageSyntaxError.Reason.allCases.count)
    }
}
