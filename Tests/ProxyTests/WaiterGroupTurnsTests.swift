import Coalescing
import Libevent
import Routing
import Testing

@testable import Proxy

/// What concerns thousands who wait for the same is done for a few of them in each iteration of the loop.
@Suite(.timeLimit(.minutes(10))) struct WaiterGroupTurnsTests {
    private func interim(_ name: String) -> String { "HTTP/1.1 103 Early Hints\r\nLink: </\(name).css>\r\n\r\n" }

    /// One that leads, one that joins by the table, and some turns of those who follow them.
    private func crowd(at proxy: TestProxy) throws -> [TestClient] {
        _ = try proxy.ask(times: 2)
        let crowd = try proxy.ask(times: 3 * Turns.turn)
        #expect(crowd.allSatisfy { $0.isWaiting })
        proxy.run { proxy.origin.requestCount == 1 }
        return crowd
    }

    /// One that leads, and some turns of those who join by the table.
    private func loners(at proxy: TestProxy) throws -> [TestClient] {
        _ = try proxy.ask()
        let loners = try (0..<3 * Turns.turn).map { _ in try proxy.ask("GET /x\nCache-Control: max-stale=5") }
        #expect(loners.allSatisfy { $0.isWaiting })
        proxy.run { proxy.origin.requestCount == 1 }
        return loners
    }

    /// To how many something was sent in one iteration.
    private func mostAtOnce(_ clients: [TestClient]) -> Int {
        let iterations = clients.flatMap { Array(Set($0.iterations)) }
        return Dictionary(grouping: iterations) { $0 }.values.map(\.count).max() ?? 0
    }

    @Test(arguments: [true, false])
    func `interim responses reach the waiters in turns, each once and in order`(isCrowd: Bool) throws {
        let proxy = try TestProxy()
        let clients = try isCrowd ? crowd(at: proxy) : loners(at: proxy)
        let (first, second, third) = (interim("a"), interim("b"), interim("c"))
        proxy.origin.tell(first + second)
        proxy.run { !clients[0].interims.isEmpty }
        // While the others are still to be told one leaves, and one more comes.
        clients[2 * Turns.turn].leave()
        proxy.origin.tell(third)
        let rest = clients.filter { !$0.hasEnded }
        #expect(rest.count == clients.count - 1)
        proxy.run { rest.allSatisfy { $0.interims == first + second + third } }
        #expect(mostAtOnce(rest) <= Turns.turn)
        proxy.origin.answer("one")
        proxy.run { rest.allSatisfy(\.hasEnded) }
        #expect(rest.allSatisfy { $0.answer == "200 one" && $0.interims == first + second + third })
        #expect(mostAtOnce(rest) <= Turns.turn)
    }

    @Test(arguments: [true, false])
    func `pending interim responses are sent before the response`(isCrowd: Bool) throws {
        let proxy = try TestProxy()
        let clients = try isCrowd ? crowd(at: proxy) : loners(at: proxy)
        let both = interim("a") + interim("b")
        proxy.origin.tell(both)
        proxy.origin.answer("one")
        proxy.run { clients.allSatisfy(\.hasEnded) }
        #expect(clients.allSatisfy { $0.answer == "200 one" && $0.interims == both })
        #expect(mostAtOnce(clients) <= Turns.turn)
    }

    @Test func `a request that joins after an interim response gets it too, in turns`() throws {
        let proxy = try TestProxy()
        let before = try crowd(at: proxy)
        let (first, second) = (interim("a"), interim("b"))
        proxy.origin.tell(first)
        proxy.run { before.allSatisfy { $0.interims == first } }
        let after = try proxy.ask(times: 3 * Turns.turn)
        #expect(after.allSatisfy { $0.interims.isEmpty })
        proxy.run { after.allSatisfy { $0.interims == first } }
        #expect(mostAtOnce(after) <= Turns.turn)
        proxy.origin.tell(second)
        proxy.run { (before + after).allSatisfy { $0.interims == first + second } }
        #expect(mostAtOnce(before + after) <= Turns.turn)
    }

    @Test func `interim responses end with a failed fetch, and no client waits for them`() throws {
        let proxy = try TestProxy()
        let clients = try crowd(at: proxy)
        proxy.origin.tell(interim("a"))
        proxy.origin.hangUp()
        proxy.run { clients.allSatisfy(\.hasEnded) }
        #expect(clients.allSatisfy { $0.answer.hasPrefix("502 ") && $0.interims == interim("a") })
    }

    @Test func `a group whose members waited too long is released a few in each iteration`() throws {
        let proxy = try TestProxy {
            $0.coalescing.whenExceeded = .unavailable
            $0.coalescing.waitTimeout = .milliseconds(1)
        }
        let clients = try crowd(at: proxy)
        proxy.run { clients.allSatisfy(\.hasEnded) }
        #expect(clients.allSatisfy { $0.answer.hasPrefix("503 ") })
        #expect(mostAtOnce(clients) <= Turns.turn)
        // The leader, whose fetch has begun.
        #expect(proxy.worker.clients.latestGroup.group?.operation.waiterCount == 1)
    }
}
