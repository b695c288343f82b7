import Routing
import Telemetry
import Testing

@testable import Proxy

/// What becomes of one request: it is answered from what is stored, leads a fetch, joins one, or meets a bound.
@Suite(.timeLimit(.minutes(10))) struct TransactionTests {
    @Test func `a miss gets the fetched response, and the next request gets the stored one`() throws {
        let proxy = try TestProxy()
        let first = try proxy.ask()
        #expect(first.isWaiting)
        proxy.run { proxy.origin.requestCount == 1 }
        proxy.origin.answer("one")
        proxy.run { first.hasEnded }
        #expect(first.answer == "200 one")
        let second = try proxy.ask()
        #expect(second.hasEnded, "a hit waits for nothing")
        #expect(second.answer == "200 one")
        #expect(proxy.origin.requestCount == 1)
    }

    @Test func `a fetch that fails gives 502 to all waiters`() throws {
        let proxy = try TestProxy()
        let clients = try proxy.ask(times: 2)
        proxy.run { proxy.origin.requestCount == 1 }
        proxy.origin.hangUp()
        proxy.run { clients.allSatisfy(\.hasEnded) }
        for client in clients { #expect(client.answer.hasPrefix("502 ")) }
        #expect(proxy.origin.requestCount == 1)
    }

    @Test func `a leader that leaves gets nothing, and the joined request gets the response`() throws {
        let proxy = try TestProxy()
        let leader = try proxy.ask()
        let joined = try proxy.ask()
        proxy.run { proxy.origin.requestCount == 1 }
        leader.leave()
        proxy.origin.answer("one")
        proxy.run { joined.hasEnded }
        #expect(leader.answer == "")
        #expect(joined.answer == "200 one")
        #expect(proxy.origin.requestCount == 1)
        #expect(proxy.counted(.coalescing(.led)) == 1)
        #expect(proxy.counted(.coalescing(.joined)) == 1)
    }

    @Test func `a late joiner reads the body as it arrives`() throws {
        let proxy = try TestProxy()
        let leader = try proxy.ask()
        proxy.run { proxy.origin.requestCount == 1 }
        proxy.origin.begin("one, ", of: 8)
        proxy.run { leader.answer == "200 one, " }
        let late = try proxy.ask()
        proxy.run { late.answer == "200 one, " }
        #expect(!leader.hasEnded)
        proxy.origin.goOn("two")
        proxy.run { leader.hasEnded && late.hasEnded }
        #expect(leader.answer == "200 one, two")
        #expect(late.answer == "200 one, two")
        #expect(proxy.counted(.coalescing(.joinedLate)) == 1)
    }

    @Test func `an unshareable response goes to the leader, and the joined request makes its own fetch`() throws {
        let proxy = try TestProxy()
        let clients = try proxy.ask(times: 2)
        proxy.run { proxy.origin.requestCount == 1 }
        proxy.origin.answer("for the first", "Cache-Control: private")
        proxy.run { clients[0].hasEnded && proxy.origin.requestCount == 2 }
        #expect(clients[1].isWaiting)
        proxy.origin.answer("for the second", "Cache-Control: private")
        proxy.run { clients[1].hasEnded }
        #expect(clients.map(\.answer) == ["200 for the first", "200 for the second"])
        #expect(proxy.counted(.coalescing(.released)) == 1)
    }

    @Test func `a request over the waiter limit gets 503 if the operator says so`() throws {
        let proxy = try TestProxy {
            $0.coalescing.maxWaiters = 1
            $0.coalescing.whenExceeded = .unavailable
        }
        let leader = try proxy.ask()
        let other = try proxy.ask()
        #expect(other.hasEnded)
        #expect(other.answer.hasPrefix("503 "))
        proxy.run { proxy.origin.requestCount == 1 }
        proxy.origin.answer("one")
        proxy.run { leader.hasEnded }
        #expect(leader.answer == "200 one")
    }

    @Test func `requests over the waiter limit share the next fetch if the operator says so`() throws {
        let proxy = try TestProxy { $0.coalescing.maxWaiters = 3 }
        let clients = try proxy.ask(times: 8)
        #expect(clients.allSatisfy { $0.isWaiting })
        proxy.run { proxy.origin.requestCount == 3 }
        for _ in 0..<3 { proxy.origin.answer("one") }
        proxy.run { clients.allSatisfy(\.hasEnded) }
        #expect(clients.allSatisfy { $0.answer == "200 one" })
        #expect(proxy.counted(.coalescing(.led)) == 3)
        #expect(proxy.counted(.coalescing(.refused)) == 0)
    }

    @Test func `a request that waited too long joins or leads the next fetch, and waits for its end`() throws {
        let proxy = try TestProxy()
        let leader = try proxy.ask()
        let others = try proxy.ask(times: 5)
        proxy.run { proxy.origin.requestCount == 1 }
        for client in others { client.transaction?.waitedTooLong() }
        // Their fetch has begun: nothing but its end ends their second wait.
        for client in others { client.transaction?.waitedTooLong() }
        let late = try proxy.ask()
        proxy.run { proxy.origin.requestCount == 2 }
        #expect(others.allSatisfy { $0.isWaiting })
        late.transaction?.waitedTooLong()
        proxy.run { proxy.origin.requestCount == 3 }
        for number in 1...3 { proxy.origin.answer("\(number)", "Cache-Control: max-age=0") }
        proxy.run { ([leader, late] + others).allSatisfy(\.hasEnded) }
        #expect(leader.answer == "200 1" && late.answer == "200 3")
        #expect(others.allSatisfy { $0.answer == "200 2" })
        #expect(proxy.counted(.coalescing(.overtaken)) == 2)
        #expect(proxy.counted(.coalescing(.alone)) == 0)
    }

    @Test func `a request that waited too long joins the same fetch again if the response just arrived`() throws {
        let proxy = try TestProxy()
        let leader = try proxy.ask()
        let joined = try proxy.ask()
        proxy.run { proxy.origin.requestCount == 1 }
        proxy.origin.begin("one, ", of: 8)
        proxy.run { leader.answer == "200 one, " && joined.answer == "200 one, " }
        joined.transaction?.waitedTooLong()
        proxy.origin.goOn("two")
        proxy.run { leader.hasEnded && joined.hasEnded }
        #expect(joined.answer == "200 one, two")
        #expect(proxy.counted(.coalescing(.overtaken)) == 0)
    }

    @Test func `a joined request that waited too long gets 503, and the leader still waits`() throws {
        let proxy = try TestProxy { $0.coalescing.whenExceeded = .unavailable }
        let leader = try proxy.ask()
        let joined = try proxy.ask()
        proxy.run { proxy.origin.requestCount == 1 }
        joined.transaction?.waitedTooLong()
        // Its fetch has begun: it waits as long as that.
        leader.transaction?.waitedTooLong()
        #expect(joined.answer.hasPrefix("503 "))
        #expect(leader.isWaiting)
    }

    @Test func `a request that waited too long gets the whole response if it is on its way`() throws {
        let proxy = try TestProxy()
        // Each has a seat of its own, because it asks for something special; more than a turn of them.
        let clients = try (0..<12).map { _ in try proxy.ask("GET /x\nCache-Control: max-age=100") }
        proxy.run { proxy.origin.requestCount == 1 }
        // Nobody may store it, so it goes on only for those who read it.
        proxy.origin.begin("one, ", of: 8, "Cache-Control: max-age=0")
        proxy.run { clients[0].answer == "200 one, " }
        let last = clients[11]
        #expect(last.isWaiting, "its turn has not come")
        last.transaction?.waitedTooLong()
        for client in clients.dropLast() { client.leave() }
        proxy.run { last.answer == "200 one, " }
        proxy.origin.goOn("two")
        proxy.run { last.hasEnded }
        #expect(last.answer == "200 one, two")
    }

    @Test func `a request with only-if-cached is never forwarded`() throws {
        let proxy = try TestProxy()
        let client = try proxy.ask("GET /x\nCache-Control: only-if-cached")
        #expect(client.answer.hasPrefix("504 "))
        #expect(proxy.origin.requestCount == 0)
    }
}
