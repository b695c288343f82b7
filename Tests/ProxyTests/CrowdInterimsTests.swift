import Bytes
import Repeatable
import Testing

@testable import Proxy

/// Who is told what, without connections.
@Suite struct CrowdInterimsTests {
    @Test func `nobody is to be told before anything has come, and nobody where nobody is`() {
        var interims = CrowdInterims()
        #expect(!interims.areToBeTold(to: 3) && interims.nextToTell(of: 3) == nil)
        interims.append(ByteSlice("a"))
        #expect(!interims.areToBeTold(to: 0) && interims.nextToTell(of: 0) == nil)
        #expect(interims.areToBeTold(to: 1))
    }

    @Test func `the members are gone through once, and again where one comes after some were told`() {
        var interims = CrowdInterims()
        interims.append(ByteSlice("a"))
        #expect((0..<3).map { _ in interims.nextToTell(of: 3) } == [0, 1, 2])
        #expect(interims.nextToTell(of: 3) == nil)
        // One joins.
        #expect(interims.nextToTell(of: 4) == 3 && interims.nextToTell(of: 4) == nil)
        interims.append(ByteSlice("b"))
        #expect((0..<2).map { _ in interims.nextToTell(of: 4) } == [0, 1])
        interims.append(ByteSlice("c"))
        #expect((0..<5).map { _ in interims.nextToTell(of: 4) } == [2, 3, 0, 1, 2])
    }

    @Test(arguments: 0..<20)
    func `each member is told each once and in order, whatever comes when`(_ seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var interims = CrowdInterims()
        var heard: [String] = []
        var had: [Int] = []
        var all = ""
        func tellNext() -> Bool {
            guard let index = interims.nextToTell(of: had.count) else { return false }
            if had[index] < interims.count { heard[index] += String(interims.bytes(since: had[index])) }
            had[index] = interims.count
            return true
        }
        for step in 0..<200 {
            switch Int.random(in: 0..<6, using: &random) {
            case 0:
                all += "\(step) "
                interims.append(ByteSlice("\(step) "))
            case 1, 2:
                heard.append("")
                had.append(0)
            default:
                _ = tellNext()
            }
        }
        while tellNext() {}
        #expect(heard.allSatisfy { $0 == all } && !interims.areToBeTold(to: had.count))
    }
}
