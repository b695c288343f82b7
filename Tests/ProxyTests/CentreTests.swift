import Bytes
import Coalescing
import HTTPSemantics
import Libevent
import LoopTesting
import Repeatable
import RouteTesting
import Routing
import Storage
import Telemetry
import Testing

@testable import Proxy

/// Invariants of the requests, groups and fetches of one loop, whatever comes in which order.
@Suite(.timeLimit(.minutes(10))) struct CentreTests {
    @Test func `a body that found some memory a moment ago does not bar heads`() {
        let line = MemoryLine()
        let body = MemoryWait(for: .body, since: 0, in: line) {}
        // What `ArrivingBody.take` does when there was memory for some of the bytes.
        body.foundSome(at: 2 * MemoryLine.bodyPatience)
        #expect(line.letsThrough(nil, for: .head, at: 2 * MemoryLine.bodyPatience + 1))
        withExtendedLifetime(body) {}
    }

    @Test func `a response requested before the drop of a former one is not stored after it`() throws {
        let proxy = try TestProxy()
        let former = try proxy.ask("GET /p?a&b")
        proxy.run { proxy.origin.requestCount == 1 }
        proxy.origin.answer("former", "Cache-Control: max-age=0\r\nETag: \"f\"")
        proxy.run { former.hasEnded }
        let slow = try proxy.ask("GET /p?a&b")
        proxy.run { proxy.origin.requestCount == 2 }
        let other = try proxy.ask("GET /p?b&a")
        proxy.run { proxy.origin.requestCount == 3 }
        proxy.origin.answerLast("new", "Cache-Control: max-age=60\r\nNo-Vary-Search: key-order")
        proxy.run { other.hasEnded }
        let again = try proxy.ask("GET /p?a&b\nCache-Control: no-cache")
        proxy.run { proxy.origin.requestCount == 4 }
        proxy.origin.answerLast("new", "Cache-Control: max-age=60\r\nNo-Vary-Search: key-order")
        proxy.run { again.hasEnded }
        let dropped = proxy.worker.context.store.resource(try keyOf(proxy, "GET /p?a&b"))?.count ?? 0
        #expect(dropped == 0, "dropFormer has dropped it")
        proxy.origin.answer("old", "Cache-Control: max-age=60")
        proxy.run { slow.hasEnded }
        let last = try proxy.ask("GET /p?a&b")
        proxy.run { last.hasEnded || proxy.origin.requestCount == 5 }
        let stored = proxy.worker.context.store.resource(try keyOf(proxy, "GET /p?a&b"))?.count ?? 0
        #expect(stored == 0, "stored after the drop")
        #expect(last.answer == "200 new")
    }

    private func keyOf(_ proxy: TestProxy, _ text: String) throws -> CacheKey {
        let parsed = try ParsedHead(text)
        return try proxy.worker.context.admit(
            parsed.head, parsed.fields, on: nil, from: .ipv4(.loopback, port: 1), isFromTrustedProxy: false,
            over: nil, isBound: false
        ).sentKey
    }

    private final class Weak {
        weak var group: WaiterGroup?
        weak var operation: FetchOperation?
        weak var transaction: Transaction?
        weak var fetch: Fetch?
        init(_ client: TestClient) {
            group = client.group
            operation = client.group?.operation
            transaction = client.transaction
            fetch = client.group?.operation.work.value
        }
        var left: String {
            (group == nil ? "" : "group ") + (operation == nil ? "" : "operation ")
                + (transaction == nil ? "" : "transaction ") + (fetch == nil ? "" : "fetch ")
        }
    }

    enum Way: Sendable, CaseIterable {
        case answered, failed, left, leftInQueue, cancelledInQueue, cancelled, released, cut, notStoredAndLeft,
            upgraded, confirmed
    }

    @Test(arguments: Way.allCases, [1, 2, 12])
    func `no object of a fetch outlives its requests`(_ way: Way, _ count: Int) throws {
        let proxy = try TestProxy { $0.coalescing.whenLastLeaves = .cancel }
        let fetches = proxy.worker.context.loopSettings.origins[0].fetches
        var weaks: [Weak] = []
        func step() {
            if way == .confirmed, let first = try? proxy.ask("GET /x") {
                proxy.run { proxy.origin.requestCount == 1 }
                proxy.origin.answer("a", "Cache-Control: max-age=0\r\nETag: \"a\"")
                proxy.run { first.hasEnded }
            }
            let queued = way == .leftInQueue || way == .cancelledInQueue
            if queued { fetches.pause() }
            let text =
                way == .upgraded
                ? "GET /x\nConnection: upgrade\nUpgrade: x"
                : way == .confirmed ? "GET /x\nIf-None-Match: \"c\"" : "GET /x"
            guard let clients = try? (0..<count).map({ _ in try proxy.ask(text) }) else { return }
            weaks = clients.map { Weak($0) }
            if !queued {
                proxy.run { proxy.origin.requestCount >= (way == .upgraded ? count : way == .confirmed ? 2 : 1) }
            }
            switch way {
            case .answered: proxy.origin.answer("one")
            case .failed: proxy.origin.hangUp()
            case .left, .leftInQueue: for client in clients { client.leave() }
            case .cancelledInQueue, .cancelled: fetches.cancelAll()
            case .released:
                proxy.origin.answer("one", "Cache-Control: private")
                for done in 1..<count {
                    proxy.run {
                        clients.filter(\.hasEnded).count >= done
                            && (proxy.origin.requestCount > done || clients.allSatisfy(\.hasEnded))
                    }
                    if clients.allSatisfy(\.hasEnded) { break }
                    proxy.origin.answer("one", "Cache-Control: private")
                }
            case .cut, .notStoredAndLeft:
                proxy.origin.begin("01", of: 10, way == .cut ? "Cache-Control: max-age=60" : "Cache-Control: no-store")
                proxy.run { clients.contains { $0.answer.hasSuffix("01") } }
                for client in clients { client.leave() }
                if way == .cut { proxy.origin.goOn("23456789") }
            case .upgraded: for _ in clients { _ = proxy.origin.switchProtocols() }
            case .confirmed:
                let tag = ByteSlice("HTTP/1.1 304 Not Modified\r\nETag: \"c\"\r\n\r\n")
                proxy.origin.tell(String(tag))
                if count > 1 {
                    for _ in 0..<20 { spin(proxy) }
                    print("CONFIRMED", count, proxy.origin.requestCount, clients[0].answer, proxy.origin.askingCount)
                    proxy.origin.skip()
                    proxy.origin.answer("two")
                }
            }
            if way == .confirmed {
                for _ in 0..<20 { spin(proxy) };
                print("ANSWERS", count, proxy.origin.requestCount, clients.map(\.answer))
            }
            if way != .upgraded {
                proxy.run { clients.allSatisfy(\.hasEnded) }
            } else {
                for _ in 0..<20 { spin(proxy) }; for client in clients { client.leave() }
            }
            fetches.resume()
        }
        step()
        for _ in 0..<20 { spin(proxy) }
        let left = Set(weaks.map(\.left)).subtracting([""])
        #expect(left == [], "\(way)")
        let snapshot = fetches.snapshot
        #expect(snapshot.inFlight == 0)
    }

    private func spin(_ proxy: TestProxy) {
        let loop = proxy.loop
        _ = loop.schedule(after: 2_000_000) { [unowned loop] in loop.stop() }
        loop.run()
    }

    /// Random requests, departures and answers on one loop; counts hold at every step and each client ends.
    @Test(arguments: 0..<60) func `every request ends once, and the operation counts the requests that are there`(
        _ seed: UInt64
    ) throws {
        var random = SeededGenerator(seed: seed &* 0x9E37_79B9_7F4A_7C15 | 1)
        let proxy = try TestProxy {
            $0.coalescing.waitTimeout = .seconds(30)
            if seed % 3 == 0 { $0.coalescing.maxWaiters = 4 }
            if seed % 2 == 0 { $0.coalescing.whenLastLeaves = .finish }
        }
        let origin = proxy.worker.context.loopSettings.origins[0]
        let kinds = [
            "Cache-Control: max-age=60", "Cache-Control: private", "Cache-Control: no-store",
            "Cache-Control: max-age=0",
            "Vary: Accept-Language\r\nCache-Control: max-age=60", "Set-Cookie: a=b", "X: y",
            "Cache-Control: max-age=60\r\nNo-Vary-Search: key-order",
        ]
        let heads = [
            "GET /x", "GET /x\nCookie: a=b", "GET /x\nAccept-Language: de", "GET /x\nAccept-Language: en", "GET /y?a&b",
            "GET /y?b&a", "HEAD /x", "GET /x\nRange: bytes=0-1", "GET /x\nIf-None-Match: \"c\"",
        ]
        var clients: [TestClient] = []
        var answered = 0
        func check() {
            let present = clients.filter { !$0.hasEnded && $0.group != nil }
            for case let operation as FetchOperation in origin.fetches.operations where !operation.hasEnded {
                let mine = present.filter { $0.group?.operation === operation }.count
                let count = operation.waiterCount
                #expect(count == mine, "seed \(seed)")
            }
        }
        for _ in 0..<150 {
            switch Int.random(in: 0..<12, using: &random) {
            case 0..<5:
                let head = heads[Int.random(in: 0..<(seed % 4 == 0 ? heads.count : 2), using: &random)]
                for _ in 0..<Int.random(in: 1...4, using: &random) { clients.append(try proxy.ask(head)) }
            case 5: clients.filter { !$0.hasEnded }.randomElement(using: &random)?.leave()
            case 6: spin(proxy)
            case 7, 8:
                spin(proxy)
                if proxy.origin.requestCount > answered {
                    answered += 1
                    proxy.origin.answer("ab", kinds.randomElement(using: &random) ?? "")
                }
            case 9:
                spin(proxy)
                if proxy.origin.requestCount > answered {
                    answered += 1
                    proxy.origin.hangUp()
                }
            case 10: proxy.origin.tell("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n")
            default: if Bool.random(using: &random) { origin.fetches.pause() } else { origin.fetches.resume() }
            }
            check()
        }
        origin.fetches.resume()
        var rounds = 0
        while clients.contains(where: { !$0.hasEnded }), rounds < 600 {
            rounds += 1
            spin(proxy)
            while proxy.origin.requestCount > answered {
                answered += 1
                proxy.origin.answer("ab", "Cache-Control: max-age=60")
            }
            check()
        }
        #expect(!clients.contains { !$0.hasEnded }, "seed \(seed): a client without an end")
        for _ in 0..<5 { spin(proxy) }
        let inFlight = origin.fetches.snapshot.inFlight
        #expect(inFlight == 0, "seed \(seed)")
    }
}
