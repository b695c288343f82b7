import Bytes
import Repeatable
import Testing

@testable import Redis

/// Random bytes, and valid replies with random damage: no trap, bounded memory, one meaning however they arrive.
struct RESPFuzzTests {
    #if DEBUG
        private static let rounds = 20_000 * Rounds.count
    #else
        private static let rounds = 200_000 * Rounds.count
    #endif

    private static let spice = wire("\r\n+-:$*_#,(!=%~|>?.;0123456789tf")

    private static func damage(_ bytes: [UInt8], _ generator: inout SeededGenerator) -> [UInt8] {
        var result = bytes
        for _ in 0..<Int.random(in: 1...3, using: &generator) where !result.isEmpty {
            let index = Int.random(in: 0..<result.count, using: &generator)
            let byte =
                Bool.random(using: &generator)
                ? spice[Int.random(in: 0..<spice.count, using: &generator)]
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

    private static func cuts(of count: Int, _ generator: inout SeededGenerator) -> [Int] {
        (0..<Int.random(in: 1...4, using: &generator)).map { _ in Int.random(in: 0...count, using: &generator) }
    }

    @Test func `what an engine can send is read as it was meant`() {
        var generator = SeededGenerator(ofTest: 30)
        for _ in 0..<Self.rounds / 4 {
            let meant = (0..<Int.random(in: 1...3, using: &generator)).map { _ in
                RESPValue.random(depth: 5, using: &generator)
            }
            let bytes = meant.flatMap(\.encoded)
            let found = values(of: bytes, cuts: Self.cuts(of: bytes.count, &generator))
            #expect(found == meant.map(\.description).joined(separator: "; "))
        }
    }

    @Test func `damaged replies have one meaning, however they arrive`() {
        var generator = SeededGenerator(ofTest: 31)
        var refused = 0
        for round in 0..<Self.rounds {
            let value = RESPValue.random(depth: 4, using: &generator)
            let bytes = Self.damage(value.encoded, &generator)
            let atOnce = values(of: bytes)
            let cuts = round % 16 == 0 ? Array(0..<bytes.count) : Self.cuts(of: bytes.count, &generator)
            #expect(values(of: bytes, cuts: cuts) == atOnce, "\(bytes), cut at \(cuts)")
            if atOnce.contains("error at") { refused += 1 }
        }
        #expect(refused > Self.rounds / 8 && refused < Self.rounds)
    }

    @Test func `random bytes take no more memory than the bounds allow`() throws {
        var generator = SeededGenerator(ofTest: 32)
        var limits = RESPLimits()
        (limits.mostBytes, limits.mostElements, limits.mostLine) = (1000, 100, 64)
        var (values, errors) = (0, 0)
        for _ in 0..<Self.rounds {
            var parser = RESPParser(limits: limits)
            let input = ByteBuffer(capacity: 16)
            do throws(RESPSyntaxError) {
                for _ in 0..<300 {
                    let byte = Self.spice[Int.random(in: 0..<Self.spice.count, using: &generator)]
                    input.append(byte)
                    guard let value = try parser.next(in: input) else {
                        // Only an unfinished line waits in the input, and the CR behind a text.
                        #expect(input.count < 64)
                        continue
                    }
                    values += 1
                    #expect(value.weight <= 1000 + 100)
                }
            } catch {
                errors += 1
            }
        }
        #expect(values > 0 && errors > Self.rounds / 2)
    }
}

extension RESPValue {
    /// The bytes of the texts, and the number of values.
    fileprivate var weight: Int {
        switch self {
        case .simple(let text), .error(let text), .bulk(let text), .double(let text), .bigNumber(let text),
            .verbatim(let text):
            text.count
        case .integer, .null, .boolean: 0
        case .array(let values), .set(let values), .map(let values), .push(let values):
            values.reduce(values.count) { $0 + $1.weight }
        }
    }
}
