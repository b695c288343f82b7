import Coalescing
import Telemetry
import Testing

@testable import Proxy

/// Requests that join the same fetch one after another share a seat, and each is served, told or let go by itself.
@Suite(.timeLimit(.minutes(1))) struct CrowdSeatTests {
    /// One that leads, one that joins by itself, and `members` who follow them.
    private func crowd(of members: Int, at proxy: TestProxy) throws -> [TestClient] {
        let others = try proxy.ask(times: 2)
        #expect(others.allSatisfy { $0.isWaiting && !$0.isInCrowd })
        let crowd = try proxy.ask(times: members)
        #expect(crowd.allSatisfy { $0.isWaiting && $0.isInCrowd })
        proxy.run { proxy.origin.requestCount == 1 }
        return crowd
    }

    @Test func `all members get the response of the one fetch, more than a turn of them too`() throws {
        let proxy = try TestProxy()
        let members = try crowd(of: 3 * Turns.turn, at: proxy)
        #expect(proxy.worker.crowd?.operation.waiterCount == members.count + 2)
        proxy.origin.answer("one")
        proxy.run { members.allSatisfy(\.hasEnded) }
        #expect(members.allSatisfy { $0.answer == "200 one" })
        #expect(proxy.origin.requestCount == 1)
        #expect(proxy.worker.crowd == nil, "what is stored is found on the hot path")
    }

    @Test func `each member is told that the fetch failed`() throws {
        let proxy = try TestProxy()
        let members = try crowd(of: 3, at: proxy)
        proxy.origin.hangUp()
        proxy.run { members.allSatisfy(\.hasEnded) }
        #expect(members.allSatisfy { $0.answer.hasPrefix("502 ") })
    }

    @Test func `a member that leaves is sent nothing, and the others wait on`() throws {
        let proxy = try TestProxy()
        let members = try crowd(of: 3, at: proxy)
        members[1].leave()
        proxy.origin.answer("one")
        proxy.run { members.allSatisfy(\.hasEnded) }
        #expect(members.map(\.answer) == ["200 one", "", "200 one"])
    }

    @Test func `a member that waited too long is told so, and the others wait on`() throws {
        let proxy = try TestProxy { $0.coalescing.whenExceeded = .unavailable }
        let members = try crowd(of: 3, at: proxy)
        members[0].transaction?.waitedTooLong()
        #expect(members[0].answer.hasPrefix("503 "))
        #expect(members[1].isWaiting && members[2].isWaiting)
    }

    @Test func `nobody joins a crowd whose members have all left`() throws {
        let proxy = try TestProxy()
        let members = try crowd(of: 2, at: proxy)
        for member in members { member.leave() }
        #expect(proxy.worker.crowd == nil)
        let next = try proxy.ask()
        #expect(next.isWaiting && !next.isInCrowd)
        proxy.origin.answer("one")
        proxy.run { next.hasEnded }
        #expect(next.answer == "200 one")
    }

    @Test func `what may not be shared releases each member, who asks for itself`() throws {
        let proxy = try TestProxy()
        let members = try crowd(of: 2, at: proxy)
        proxy.origin.answer("for the first", "Cache-Control: private")
        // The one that joined by itself, and the members.
        proxy.run { proxy.origin.requestCount == 4 }
        #expect(proxy.counted(.coalescing(.released)) == 3)
        for _ in 0..<3 { proxy.origin.answer("for another", "Cache-Control: private") }
        proxy.run { members.allSatisfy(\.hasEnded) }
        #expect(members.allSatisfy { $0.answer == "200 for another" })
    }

    @Test func `a request that asks for something special takes a seat of its own`() throws {
        let proxy = try TestProxy()
        _ = try crowd(of: 1, at: proxy)
        let special = try proxy.ask("GET /x\nCache-Control: max-stale=5")
        #expect(special.isWaiting && !special.isInCrowd)
    }
}
