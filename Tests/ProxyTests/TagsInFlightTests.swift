import Bytes
import Coalescing
import HTTPSemantics
import Libevent
import LoopTesting
import Repeatable
import Routing
import Storage
import Testing

@testable import Proxy

/// Purges of tags while fetches of them are in flight (`TagTable`), in random orders, against an origin whose page gets
/// a new version before each purge.
@Suite(.timeLimit(.minutes(10))) struct TagsInFlightTests {
    private enum Purge: CaseIterable { case tag, group, url, soft }

    private struct Asked {
        let client: TestClient
        /// The oldest version that the client may get.
        let least: Int
        let method: String
    }

    /// One page and its clients, from the first request until all have their answers.
    private final class Schedule {
        private let proxy: TestProxy
        private var random: SeededGenerator
        private let path: String
        private var key: CacheKey?
        /// The version before which all is purged.
        private var least = 0
        private var asked: [Asked] = []
        /// Bodies of which a part is sent.
        private var arriving: [(socket: TestSocket, rest: String)] = []
        private(set) var mistakes: [String] = []

        init(_ number: UInt64, at proxy: TestProxy) {
            self.proxy = proxy
            random = SeededGenerator(seed: number)
            path = "/\(number)"
            proxy.origin.version = 0
        }

        func run() throws {
            for _ in 0..<Int.random(in: 4...16, using: &random) {
                switch Int.random(in: 0..<10, using: &random) {
                case 0...2: try ask(what: .random(in: 0..<6, using: &random))
                case 3...5: answerNext()
                case 6: goOn()
                case 7: if proxy.origin.version < 9 { purge(Purge.allCases.randomElement(using: &random) ?? .tag) }
                default: turn()
                }
            }
            try finish()
            // A stale answer after a soft purge has the page refreshed; then everybody gets the latest.
            for _ in 0..<2 {
                try ask(what: 0)
                try finish()
            }
            least = proxy.origin.version
            try ask(what: 0)
            try finish()
            check()
        }

        private func ask(what: Int) throws {
            let text =
                switch what {
                case 3: "GET \(path)\nCache-Control: no-cache"
                case 4: "GET \(path)\nRange: bytes=0-3"
                case 5: "GET \(path)\nRange: bytes=4-7"
                default: "GET \(path)"
                }
            let client = try proxy.ask(text)
            if let request = client.transaction?.request { key = request.sentKey }
            asked.append(Asked(client: client, least: least, method: text))
        }

        private func answerNext() {
            guard proxy.origin.askingCount > 0 else { return }
            let asking = proxy.origin.take()
            let (head, version) = (asking.head.lowercased(), asking.version)
            let fields =
                "ETag: \"\(version)\"\r\nCache-Control: max-age=60\r\nCache-Tag: other, t\r\nCache-Groups: \"g\"\r\n"
            if head.contains("if-none-match: \"\(version)\"") {
                return send("HTTP/1.1 304 Not Modified\r\n\(fields)\r\n", to: asking.socket)
            }
            let isOther = head.contains("if-range: ") && !head.contains("if-range: \"\(version)\"")
            var (range, status) = (0..<10, "200 OK")
            if !isOther, let start = [0, 4].first(where: { head.contains("range: bytes=\($0)-\($0 + 3)") }) {
                (range, status) = (
                    start..<start + 4, "206 Partial Content\r\nContent-Range: bytes \(start)-\(start + 3)/10"
                )
            }
            let content = String(repeating: "\(version)", count: range.count)
            let sent = Int.random(in: 0...1, using: &random) * range.count / 2
            send(
                "HTTP/1.1 \(status)\r\nContent-Length: \(range.count)\r\n\(fields)\r\n\(content.prefix(sent))",
                to: asking.socket)
            arriving.append((asking.socket, String(content.dropFirst(sent))))
        }

        private func goOn() {
            guard let index = arriving.indices.randomElement(using: &random) else { return }
            let (socket, rest) = arriving.remove(at: index)
            send(rest, to: socket)
        }

        private func send(_ text: String, to socket: TestSocket) {
            let bytes = ByteSlice(text)
            _ = socket.write(bytes.span)
        }

        private func purge(_ what: Purge) {
            let (shared, context) = (proxy.worker.context.shared, proxy.worker.context)
            proxy.origin.version += 1
            switch what {
            case .tag: _ = shared.purge(tags: [ByteSlice("t")], softening: nil)
            case .group: shared.invalidate(["g"], of: "a.example")
            case .url:
                guard let key else { return }
                shared.invalidate(key, using: context.keys, keepsNotes: false)
            case .soft:
                _ = shared.purge(tags: [ByteSlice("t")], softening: Softening(at: context.now, grace: 60))
                return
            }
            least = proxy.origin.version
        }

        /// What has become possible is done.
        private func turn() {
            proxy.loop.schedule(after: 0) { [loop = proxy.loop] in loop.stop() }
            proxy.loop.run()
        }

        /// Until all clients have their answers, and nothing is in flight.
        private func finish() throws {
            var turns = 0
            func isBusy() -> Bool {
                asked.contains { !$0.client.hasEnded } || !arriving.isEmpty || proxy.origin.askingCount > 0
                    || proxy.worker.context.shared.origins.contains { !$0.fetches.operations.isEmpty }
            }
            while isBusy() {
                turns += 1
                guard turns < 10_000 else {
                    mistakes.append("nothing goes on")
                    return asked.removeAll()
                }
                if proxy.origin.askingCount > 0 { answerNext() }
                goOn()
                turn()
            }
            for one in asked {
                let answer = one.client.answer
                let bytes = answer.dropFirst(4)
                let version = bytes.first.flatMap { Int(String($0)) } ?? -1
                if !answer.hasPrefix("20") || version < one.least || bytes.contains(where: { $0 != bytes.first }) {
                    mistakes.append("\(one.method): \(answer), at least \(one.least)")
                }
            }
            asked.removeAll()
        }

        /// Nothing that is purged is stored as valid.
        private func check() {
            guard let key, let resource = proxy.worker.context.shared.store.resource(key) else { return }
            for response in resource.responses {
                guard let byte = response.pieces?.first.map({ String($0) })?.first, let version = Int(String(byte)),
                    version >= least || response.facts.contains(.isInvalidated)
                else {
                    mistakes.append("stored: \(response.facts)")
                    continue
                }
            }
        }
    }

    /// `COALESCED_TEST_ROUNDS=5` makes 10,000.
    @Test func `in whatever order, nobody gets what was purged before the request came`() throws {
        let proxy = try TestProxy { $0.caching.rangeMisses = .part }
        for seed in Rounds.seeds(2_000) {
            let schedule = Schedule(seed, at: proxy)
            try schedule.run()
            #expect(schedule.mistakes.isEmpty, "seed \(seed): \(schedule.mistakes)")
            if !schedule.mistakes.isEmpty { return }
        }
    }

    /// They are one object where the second follows the first without a look-up.
    @Test func `of two requests with one head in one moment, the one after a purge gets another response`() throws {
        let proxy = try TestProxy()
        let fields = "Cache-Control: max-age=60\r\nxkey: t"
        let leader = try proxy.ask()
        let request = try proxy.admit()
        let (before, after) = (TestClient(of: proxy.worker), TestClient(of: proxy.worker))
        before.ask(request)
        _ = proxy.worker.context.shared.purge(tags: [ByteSlice("t")], softening: nil)
        after.ask(request)
        proxy.run { proxy.origin.requestCount == 1 }
        proxy.origin.answer("a", fields)
        proxy.run { leader.hasEnded && before.hasEnded }
        #expect(leader.answer == "200 a" && before.answer == "200 a")
        proxy.run { proxy.origin.requestCount == 2 }
        proxy.origin.answer("b", fields)
        proxy.run { after.hasEnded }
        #expect(after.answer == "200 b")
    }

    /// The steps of one order each, which random ones may miss.
    @Test(arguments: ["before its head", "while its body arrives"])
    func `a request after a purge joins no fetch from before it, and the response is not stored`(when: String) throws {
        for softening in [nil, Softening(at: 0, grace: 60)] {
            let proxy = try TestProxy()
            let shared = proxy.worker.context.shared
            let fields = "Cache-Control: max-age=60\r\nSurrogate-Key: s t"
            let first = try proxy.ask()
            proxy.run { proxy.origin.requestCount == 1 }
            if when == "while its body arrives" {
                proxy.origin.begin("a", of: 2, fields)
                proxy.run { first.answer == "200 a" }
            }
            _ = shared.purge(tags: [ByteSlice("t")], softening: softening)
            let second = try proxy.ask()
            if when == "before its head" {
                proxy.origin.begin("a", of: 2, fields)
                proxy.run { first.answer == "200 a" }
            }
            proxy.run { proxy.origin.requestCount == 2 }
            proxy.origin.goOn("a")
            proxy.run { first.hasEnded }
            #expect(first.answer == "200 aa")
            proxy.origin.answer("b", fields)
            proxy.run { second.hasEnded }
            #expect(second.answer == "200 b")
            let third = try proxy.ask()
            #expect(third.answer == "200 b" && proxy.origin.requestCount == 2)
        }
    }
}
