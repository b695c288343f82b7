import Glibc
import Synchronization
import Testing

/// A purge around an upgrade reaches each cache from which a client may still be served.
@Suite(.scenario) struct UpgradePurgeTests {
    /// A page whose content counts up when the test says so.
    private final class Page: Sendable {
        private let number = Mutex(1)

        var current: Int { number.withLock { $0 } }
        func change() -> Int {
            number.withLock {
                $0 += 1
                return $0
            }
        }
    }

    private func withPage(_ settings: Setting..., body: (Page, Program) throws -> Void) throws {
        try scenario(settings: settings) { origin, proxy in
            let page = Page()
            // Head and content apart, so that an upgrade may begin between the two.
            origin.on("/x") { _ in
                let text = "\(page.current)"
                return [
                    .head(200, "Cache-Control: max-age=600", "Content-Length: \(text.count)"), .wait(.milliseconds(5)),
                    .text(text),
                ]
            }
            try body(page, proxy)
        }
    }

    private func purge(_ proxy: Program) throws -> Answer {
        try proxy.admin.send("POST", "/purge", body: "http://\(proxy.host)/x")
    }

    /// A client that has had a first response from the program that serves now.
    private func stayingClient(_ proxy: Program) throws -> Conversation {
        while true {
            let client = try proxy.connect()
            try client.send(proxy.request("GET", "/x"))
            let answer = try client.answer()
            #expect(answer.text == "1")
            // Otherwise the one before it took the client from its queue, as one of its last.
            if answer["connection"] == nil { return client }
        }
    }

    @Test(arguments: 1...3)
    func `a client that stays with an old program gets no response from before a purge`(_ upgrades: Int) throws {
        try withPage { page, proxy in
            var clients: [Conversation] = []
            for number in 0..<upgrades {
                for _ in 0..<2 { clients.append(try stayingClient(proxy)) }
                try proxy.upgrade()
                #expect(proxy.successors.count == number + 1)
            }
            // The newest program has the page too: another one may take a request of its own from its queue.
            let newest = try stayingClient(proxy)
            defer { newest.close() }
            // The first one of each program shows that its cache is in use.
            for client in clients.enumerated().filter({ $0.offset % 2 == 0 }).map(\.element) {
                try client.send(proxy.request("GET", "/x"))
                let answer = try client.answer()
                #expect(answer.text == "1" && answer["cache-status"]?.contains("hit") == true)
            }
            let next = page.change()
            let purged = try purge(proxy)
            #expect(purged.status == 200 && purged.text.hasPrefix("purged 1 stored response;"), "\(purged.text)")
            #expect(try proxy.get("/x").text == "\(next)")
            for client in clients.enumerated().filter({ $0.offset % 2 == 1 }).map(\.element) {
                try client.send(proxy.request("GET", "/x"))
                let answer = try client.answer()
                #expect(answer.text == "\(next)" && answer["connection"] == "close")
            }
            #expect(try proxy.exited() == .code(0))
        }
    }

    @Test func `the old program refuses a purge, and says why`() throws {
        try withPage { page, proxy in
            let kept = try proxy.connect()
            try kept.send(proxy.request("GET", "/x"))
            #expect(try kept.answer().text == "1")
            let early = try proxy.admin.connect()
            let request = proxy.admin.request("POST", "/purge", body: "all")
            try early.send(String(request.dropLast(3)))
            try proxy.upgrade()
            try early.send("all")
            let answer = try early.answer(to: "POST")
            #expect(answer.status == 503 && answer.text.contains("send the purge again"), "\(answer.text)")
            #expect(try purge(proxy).status == 200)
        }
    }

    @Test func `after a failed upgrade the old program purges again`() throws {
        try withPage { page, proxy in
            #expect(try proxy.get("/x").text == "1")
            try System.write("workers: none\n", to: proxy.configurationPath)
            proxy.signal(SIGUSR2)
            try eventually("it failed") { proxy.diagnostics.contains("this program serves on") }
            let next = page.change()
            #expect(try purge(proxy).text.hasPrefix("purged 1 stored response;"))
            #expect(try proxy.get("/x").text == "\(next)")
        }
    }

    /// What the clients of one round share.
    private final class Watched: Sendable {
        /// The page's number when the last purge was answered.
        let purged = Mutex(1)
        let isOver = Mutex(false)
        let running = Mutex(0)
        let wrong = Mutex([String]())
        let served = Mutex(0)
        let refused = Mutex(0)
    }

    private func startClient(_ proxy: Program, _ watched: Watched, keepsOpen: Bool) {
        watched.running.withLock { $0 += 1 }
        System.startThread {
            defer { watched.running.withLock { $0 -= 1 } }
            var client: Conversation?
            while watched.isOver.withLock({ !$0 }) {
                do {
                    let open = try client ?? proxy.connect()
                    let least = watched.purged.withLock { $0 }
                    try open.send(proxy.request("GET", "/x"))
                    let answer = try open.answer()
                    watched.served.withLock { $0 += 1 }
                    if Int(answer.text) ?? 0 < least {
                        let found = "\(answer.ending), \(answer.status), \(answer.text), \(answer.cacheStatus)"
                        let place = "on \(client == nil ? "a new" : "a kept") connection, after the purge of \(least)"
                        watched.wrong.withLock { $0.append("\(found); \(place)") }
                    }
                    client = keepsOpen && answer["connection"] == nil ? open : nil
                    if keepsOpen { System.nap(.milliseconds(3)) }
                } catch {
                    watched.wrong.withLock { $0.append("\(error)") }
                    client = nil
                }
            }
        }
    }

    @Test(.overHTTP1("after GOAWAY a client asks again on another connection"))
    func `at no moment of an upgrade does a client get a response from before a purge that was answered`() throws {
        let rounds = System.environment("COALESCED_TEST_ROUNDS").flatMap { Int($0) } ?? 1
        try withPage(.workers(2)) { page, proxy in
            let watched = Watched()
            for _ in 0..<4 { startClient(proxy, watched, keepsOpen: false) }
            for _ in 0..<12 { startClient(proxy, watched, keepsOpen: true) }
            watched.running.withLock { $0 += 1 }
            System.startThread {
                defer { watched.running.withLock { $0 -= 1 } }
                while watched.isOver.withLock({ !$0 }) {
                    let next = page.change()
                    do {
                        let answer = try proxy.admin.send("POST", "/purge", body: "http://\(proxy.host)/x")
                        if answer.status == 200 {
                            watched.purged.withLock { $0 = next }
                        } else {
                            watched.refused.withLock { $0 += 1 }
                        }
                    } catch {
                        watched.wrong.withLock { $0.append("purge: \(error)") }
                    }
                }
            }
            for _ in 0..<(4 * rounds) { try proxy.upgrade() }
            watched.isOver.withLock { $0 = true }
            try eventually("all have ended", within: .seconds(60)) { watched.running.withLock { $0 == 0 } }
            let refusals = watched.refused.withLock { $0 }
            note(
                "requests and purges while upgrading \(4 * rounds) times",
                "\(watched.served.withLock { $0 }), \(page.current), of which \(refusals) were refused")
            #expect(try proxy.exited() == .code(0))
            let wrong = watched.wrong.withLock { $0 }
            #expect(wrong.isEmpty, "\(wrong.count): \(wrong.prefix(5))")
        }
    }
}
