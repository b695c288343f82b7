import Bytes
import HTTPSemantics
import Repeatable
import Testing

/// Valid messages with random damage: no trap, and one verdict however they arrive.
@Suite struct FuzzTests {
    #if DEBUG
        static let rounds = 60_000 * Rounds.count
    #else
        static let rounds = 200_000 * Rounds.count
    #endif

    static let requests = [
        "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "POST /a?b HTTP/1.1\r\nHost: [::1]:80\r\nTransfer-Encoding: chunked\r\nConnection: close, x\r\n\r\n",
        "OPTIONS http://b?c HTTP/1.0\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n",
        "\r\nCONNECT a:1 HTTP/1.1\r\nHost: a:1\r\nUpgrade: h\r\nConnection: upgrade\r\n\r\n",
    ].map { wire($0) }
    static let responses = [
        "HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\nDate: x\r\n\r\n",
        "HTTP/1.0 304 \r\nTransfer-Encoding: chunked\r\nConnection: keep-alive\r\n\r\n",
    ].map { wire($0) }
    static let bodies = [
        "5;a=\"b\"\r\nhello\r\n1 ; c\r\n!\r\n0\r\nX: y\r\n\r\nmore",
        "a\r\n0123456789\r\n0\r\n\r\n",
    ].map { wire($0) }
    /// What parsers disagree about.
    static let spice = wire("\r\n\r\n \t\u{0}\u{b}\u{c}:;,\"\\#?/@[]%0fFx-+\u{7f}\u{80}\u{ff}")

    private func mutate(_ message: [UInt8], _ generator: inout SeededGenerator) -> [UInt8] {
        var result = message
        for _ in 0..<Int.random(in: 1...3, using: &generator) where !result.isEmpty {
            let index = Int.random(in: 0..<result.count, using: &generator)
            let byte =
                Bool.random(using: &generator)
                ? Self.spice[Int.random(in: 0..<Self.spice.count, using: &generator)]
                : UInt8.random(in: 0...255, using: &generator)
            switch Int.random(in: 0..<5, using: &generator) {
            case 0: result[index] = byte
            case 1: result.insert(byte, at: index)
            case 2: result.remove(at: index)
            case 3: result.removeLast(result.count - index)
            default:
                let end = Int.random(in: index..<result.count, using: &generator)
                result.insert(contentsOf: result[index...end], at: index)
            }
        }
        return result
    }

    private func fuzz(_ seeds: [[UInt8]], _ rounds: Int, seed: UInt64, _ read: ([UInt8], Delivery) -> String) {
        var generator = SeededGenerator(ofTest: seed)
        var refused = 0
        for round in 0..<rounds {
            let message = mutate(seeds[round % seeds.count], &generator)
            let atOnce = read(message, .atOnce)
            let cut = message.count > 1 ? Int.random(in: 1..<message.count, using: &generator) : 0
            let delivery = round % 16 == 0 ? Delivery.byteByByte : .cut([cut])
            let split = read(message, delivery)
            if split != atOnce {
                Issue.record(
                    "\(String(decoding: message, as: UTF8.self).debugDescription) \(delivery): \(atOnce) / \(split)")
                return
            }
            if atOnce.contains("@") { refused += 1 }
        }
        // The damage must be seen, and must not be all there is.
        #expect(refused > rounds / 10 && refused < rounds)
    }

    @Test func `damaged requests get one verdict`() {
        let limits = HeadLimits(maxHeadBytes: 120, maxFieldLines: 4, maxTargetLength: 12)
        fuzz(Self.requests, Self.rounds, seed: 3) { readRequest($0, $1, limits: limits) }
    }

    @Test func `damaged responses get one verdict`() {
        fuzz(Self.responses, Self.rounds / 3, seed: 4) { readResponse($0, $1) }
    }

    @Test func `damaged chunks get one verdict`() {
        fuzz(Self.bodies, Self.rounds / 3, seed: 5) { readBody($0, .chunked, $1) }
    }

    @Test func `a damaged date is refused, or equals a date that can be written`() {
        var generator = SeededGenerator(ofTest: 6)
        let buffer = ByteBuffer(capacity: HTTPDate.length)
        // 31 December 9999.
        let lastSecond: Int64 = 253_402_300_799
        var read = 0
        let rounds = Self.rounds / 3
        for _ in 0..<rounds {
            let text = mutate(wire("Sunday, 06-Nov-94 08:49:37 GMT"), &generator)
            guard let seconds = HTTPDate.parse(text.span, now: .random(in: .min ... .max, using: &generator)) else {
                continue
            }
            read += 1
            // A `now` near the end of time puts two-digit years behind the last that can be written.
            guard seconds <= lastSecond else { continue }
            buffer.removeAll()
            HTTPDate.append(seconds, to: buffer)
            let again = HTTPDate.parse(buffer.span, now: 0)
            #expect(again == seconds)
        }
        #expect(read > 0 && read < rounds)
    }

    @Test func `a damaged authority is refused or has a host inside it`() {
        var generator = SeededGenerator(ofTest: 7)
        var read = 0
        let rounds = Self.rounds / 3
        for _ in 0..<rounds {
            let text = mutate(wire("[1:2::3.4.5.6]:80"), &generator)
            guard let authority = Authority(text.span) else { continue }
            read += 1
            let host = authority.host.range
            #expect(host.lowerBound >= 0 && host.upperBound <= text.span.count)
        }
        #expect(read > 0 && read < rounds)
    }
}
