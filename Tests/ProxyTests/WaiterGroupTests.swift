import Coalescing
import Libevent
import Routing
import Telemetry
import Testing

@testable import Proxy

/// The requests of a loop that wait for the same fetch are one waiter there, and each is served, told or let go by itself.
@Suite(.timeLimit(.minutes(10))) struct WaiterGroupTests {
    /// One that leads, one that joins by the table, and `members` who follow them.
    private func crowd(of members: Int, at proxy: TestProxy) throws -> [TestClient] {
        let others = try proxy.ask(times: 2)
        let crowd = try proxy.ask(times: members)
        #expect((others + crowd).allSatisfy { $0.isWaiting && $0.group === others[0].group })
        #expect(proxy.worker.clients.latestGroup.group === others[0].group)
        proxy.run { proxy.origin.requestCount == 1 }
        return crowd
    }

    @Test func `all members get the response of the one fetch, even more of them than fit a turn`() throws {
        let proxy = try TestProxy()
        let members = try crowd(of: 3 * Turns.turn, at: proxy)
        #expect(proxy.worker.clients.latestGroup.group?.operation.waiterCount == members.count + 2)
        proxy.origin.answer("one")
        proxy.run { members.allSatisfy(\.hasEnded) }
        #expect(members.allSatisfy { $0.answer == "200 one" })
        #expect(proxy.origin.requestCount == 1)
        #expect(proxy.worker.clients.latestGroup.group == nil, "what is stored is found on the hot path")
    }

    @Test func `each member gets the failure of the fetch`() throws {
        let proxy = try TestProxy()
        let members = try crowd(of: 3, at: proxy)
        proxy.origin.hangUp()
        proxy.run { members.allSatisfy(\.hasEnded) }
        #expect(members.allSatisfy { $0.answer.hasPrefix("502 ") })
    }

    @Test func `a member that leaves gets nothing, and the others keep waiting`() throws {
        let proxy = try TestProxy()
        let members = try crowd(of: 3, at: proxy)
        members[1].leave()
        proxy.origin.answer("one")
        proxy.run { members.allSatisfy(\.hasEnded) }
        #expect(members.map(\.answer) == ["200 one", "", "200 one"])
    }

    @Test func `a member that waited too long gets 503, and the others keep waiting`() throws {
        let proxy = try TestProxy { $0.coalescing.whenExceeded = .unavailable }
        let members = try crowd(of: 3, at: proxy)
        members[0].transaction?.waitedTooLong()
        #expect(members[0].answer.hasPrefix("503 "))
        #expect(members[1].isWaiting && members[2].isWaiting)
    }

    @Test func `after a reload with a shorter wait-timeout nobody waits for longer than those who come`() throws {
        let proxy = try TestProxy {
            $0.coalescing.whenExceeded = .unavailable
            $0.coalescing.waitTimeout = .seconds(3600)
        }
        let members = try crowd(of: 2, at: proxy)
        proxy.reload { $0.coalescing.waitTimeout = .milliseconds(300) }
        let late = try proxy.ask()
        #expect(late.group === members[0].group)
        proxy.run { late.hasEnded }
        #expect(late.answer.hasPrefix("503 "))
        #expect(members.allSatisfy { $0.answer.hasPrefix("503 ") })
    }

    @Test func `nobody follows a request from before a reload`() throws {
        let proxy = try TestProxy()
        let former = try proxy.admit()
        proxy.reload { _ in }
        let clients = (0..<2).map { _ in TestClient(of: proxy.worker) }
        for client in clients { client.ask(former) }
        #expect(clients[0].group != nil && clients[0].group === clients[1].group)
        #expect(proxy.worker.clients.latestGroup.group == nil)
        let next = try proxy.ask()
        #expect(next.group === clients[0].group && next.transaction?.request.route !== former.route)
        #expect(proxy.worker.clients.latestGroup.group === next.group, "others follow this one")
    }

    @Test func `a group whose members have all left takes no request`() throws {
        let proxy = try TestProxy()
        let members = try proxy.ask(times: 4)
        proxy.run { proxy.origin.requestCount == 1 }
        let group = members[0].group
        for member in members { member.leave() }
        #expect(proxy.worker.clients.latestGroup.group == nil)
        let next = try proxy.ask()
        #expect(next.isWaiting && next.group !== group)
        proxy.origin.answer("one")
        proxy.run { next.hasEnded }
        #expect(next.answer == "200 one")
        #expect(proxy.origin.requestCount == 1)
    }

    @Test func `members that come and leave all the time leave no trace`() throws {
        let proxy = try TestProxy()
        let first = try proxy.ask(times: 3)
        for _ in 0..<3000 { try proxy.ask().leave() }
        let last = try proxy.ask(times: 2)
        first[1].leave()
        proxy.run { proxy.origin.requestCount == 1 }
        proxy.origin.answer("one")
        proxy.run { (first + last).allSatisfy(\.hasEnded) }
        #expect((first + last).map(\.answer) == ["200 one", "", "200 one", "200 one", "200 one"])
    }

    @Test func `an unshareable response releases each member, which then requests for itself`() throws {
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

    @Test func `a request that asks for something special waits with the others, and nobody follows it`() throws {
        let proxy = try TestProxy()
        let members = try crowd(of: 1, at: proxy)
        let latest = proxy.worker.clients.latestGroup.group?.latest
        let special = try proxy.ask("GET /x\nCache-Control: max-stale=5")
        #expect(special.isWaiting && special.group === members[0].group)
        #expect(proxy.worker.clients.latestGroup.group?.latest === latest)
    }

    @Test func `a fetch for one request alone is a group of one`() throws {
        let proxy = try TestProxy()
        let clients = try (0..<2).map { _ in try proxy.ask("GET /x\nCache-Control: no-store") }
        #expect(clients[0].group !== clients[1].group)
        #expect(clients.allSatisfy { $0.group?.operation.waiterCount == 1 })
        proxy.run { proxy.origin.requestCount == 2 }
        clients[0].leave()
        proxy.origin.hangUp()
        proxy.origin.answer("two")
        proxy.run { clients[1].hasEnded }
        #expect(clients.map(\.answer) == ["", "200 two"])
    }
}
