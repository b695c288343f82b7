import Coalescing
import CoalescingDispatch
import CoalescingPlaces
import Dispatch
import Foundation
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The examples of `Coalescing.docc/Coalescing.md`, run.
struct ExampleTests {
    @Test func `the first five lines run as printed`() async throws {
        let database = Database()
        async let answer: Void = database.asked.answer(.success([7: User(name: "Ada")]))

        let users = OperationQueueManager<Int>()

        let user = try await users.value(for: 7) {
            try await database.user(7)
        }
        #expect(user.name == "Ada")
        await answer
    }

    @Test func `a profile is fetched once for a hundred callers, and kept`() async throws {
        let profiles = Profiles(server: ProfileServer())
        let names = try await withThrowingTaskGroup(of: String.self) { group in
            for _ in 0..<100 { group.addTask { try await profiles.profile(of: 7).name } }
            await until { profiles.inFlight.snapshot.joined == 99 }
            await profiles.server.asked.answer(.success(Profile(name: "Ada")))
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(names == Array(repeating: "Ada", count: 100))
        #expect(try await profiles.profile(of: 7).name == "Ada")
        #expect(profiles.server.asked.log == [7])
    }

    @Test func `a profile's callers catch what the server threw`() async {
        let profiles = Profiles(server: ProfileServer())
        async let answer: Void = profiles.server.asked.answer(.failure(Broken()))
        await #expect(throws: Broken.self) { try await profiles.profile(of: 7) }
        await answer
    }

    @Test(
        arguments: [
            ("Rome", .success(Forecast(city: "Rome", degrees: 21))), ("Babel", .failure(.malformed)),
            ("Atlantis", .failure(.status(404))), ("Moon", .failure(.unreachable)),
        ] as [(String, Result<Forecast, ForecastError>)])
    func `a request gives a forecast or its own errors`(city: String, expected: Result<Forecast, ForecastError>)
        async throws
    {
        let requests = OperationQueueManager<URL>()
        do {
            let got = try await requests.forecast(at: url(city), session: StandIn.session())
            #expect(expected == .success(got))
        } catch let error as ForecastError {
            #expect(expected == .failure(error))
        }
    }

    @Test func `a request is cancelled with the last task that waits for it`() async throws {
        let (requests, session, url) = (OperationQueueManager<URL>(), StandIn.session(), try url("Nowhere"))
        let callers = (0..<2).map { _ in Task { try await requests.forecast(at: url, session: session) } }
        await until { requests.snapshot.joined == 1 && StandIn.asked.entries.contains(url) }
        callers[0].cancel()
        await #expect(throws: CancellationError.self) { try await callers[0].value }
        #expect(!StandIn.stopped.entries.contains(url))
        callers[1].cancel()
        await #expect(throws: CancellationError.self) { try await callers[1].value }
        await until { StandIn.stopped.entries.contains(url) }
        #expect(StandIn.asked.entries.count { $0 == url } == 1)
    }

    @Test func `shared and plain operations take turns under one limit`() async throws {
        let (photos, renderer, disk) = (Photos(), Renderer(), Disk())
        async let first = photos.thumbnail(of: "a", from: renderer)
        await until { renderer.asked.log.count == 1 }
        async let same = photos.thumbnail(of: "a", from: renderer)
        await until { photos.queue.snapshot.joined == 1 }
        photos.sweep(disk)
        photos.sweep(disk)
        async let second = photos.thumbnail(of: "b", from: renderer)
        await until { photos.queue.snapshot.queued == 2 }
        #expect(disk.asked.log.count == 1)
        // The thumbnail comes before the second sweep.
        await disk.asked.answer(.success(()))
        await until { renderer.asked.log.count == 2 }
        #expect(disk.asked.log.count == 1)
        for photo in ["a", "b"] { await renderer.asked.answer(.success(Thumbnail(photo: photo))) }
        #expect(try await [first, same, second].map(\.photo) == ["a", "a", "b"])
        await disk.asked.answer(.success(()))
        await until { photos.queue.snapshot.inFlight == 0 }
        #expect(renderer.asked.log == ["a", "b"])
    }

    @Test func `two connections share what they depend on, and the observer sees both end`() async {
        let (log, got, network) = (Log<String>(), Log<String>(), Network())
        let connections = Connections(network: network) { log.append($0) }
        let queue = DispatchQueue(label: "callers")
        for port in [80, 443] {
            let waiter = Waiter<Connection>(on: queue) { got.append((try? $0.get().peer) ?? "none") }
            connections.connect(to: "example.org", port: port, waiter: waiter)
        }
        #expect(network.resolve.log == ["example.org"])
        #expect(network.connect.log.isEmpty)
        await network.resolve.answer(.success(["192.0.2.1"]))
        for _ in 0..<2 { await network.connect.answer(.success(Connection(peer: "192.0.2.1"))) }
        await until { got.entries.count == 2 }
        #expect(Set(network.connect.log) == ["192.0.2.1:80", "192.0.2.1:443"])
        #expect(got.entries == ["192.0.2.1", "192.0.2.1"])
        #expect(log.entries == ["finished, no error", "finished, no error"])
    }

    @Test func `a connection fails with what it depends on`() async {
        let (log, got, network) = (Log<String>(), Log<OperationError>(), Network())
        let connections = Connections(network: network) { log.append($0) }
        let waiter = Waiter<Connection>(on: InlineQueue.shared) { result in
            if case .failure(let error) = result { got.append(error) }
        }
        connections.connect(to: "example.org", port: 80, waiter: waiter)
        await network.resolve.answer(.failure(Broken()))
        guard case .dependency(.failed(let error)) = got.entries.first else { return _ = Issue.record("no reason") }
        #expect(error is Broken)
        #expect(network.connect.log.isEmpty)
        #expect(log.entries == ["finished, dependency"])
    }

    @Test func `a run of numbers comes in bursts of six`() {
        let printed = Log<String>()
        printBursts(clock: ManualClock()) { printed.append($0) }
        #expect(printed.entries == ["[1…6]", "[7…12]", "[13…18]"])
    }

    @Test func `many keys are one query, and each key is in it once`() async {
        let (database, clock, got) = (Database(), ManualClock(), Log<String>())
        let loader = UserLoader(database: database, timers: clock.timers)
        for id in [1, 2, 3, 2, 1] {
            let waiter = Waiter<User?>(on: InlineQueue.shared) {
                got.append("\(id) \((try? $0.get())??.name ?? "none")")
            }
            _ = loader.lookups.enqueue(id, waiter: waiter) { UserLoader.Lookup(id: id, batch: loader.batch) }
        }
        clock.advance(by: .milliseconds(1))
        await database.asked.answer(.success([1: User(name: "Ada"), 2: User(name: "Bob")]))
        #expect(got.entries.sorted() == ["1 Ada", "1 Ada", "2 Bob", "2 Bob", "3 none"])
        #expect(database.asked.log == [[1, 2, 3]])
    }

    @Test func `a task loads one user with real timers`() async throws {
        let database = Database()
        let loader = UserLoader(database: database)
        async let user = loader.user(1)
        await database.asked.answer(.success([1: User(name: "Ada")]))
        #expect(try await user?.name == "Ada")
    }

    @Test func `a log is read once for all who follow it, from its start or from now`() async throws {
        let (server, shown) = (LogServer(), Log<String>())
        let tail = LogTail(server: server)
        let early = Task { try await tail.follow("api") { shown.append("early \($0)") } }
        await until { server.asked.entries == ["api"] }
        server.write("a")
        await until { shown.entries.count == 1 }
        let late = Task { try await tail.follow("api") { shown.append("late \($0)") } }
        await until { shown.entries.count == 2 }
        server.write("b")
        server.finish()
        try await early.value
        try await late.value
        #expect(shown.entries.filter { $0.hasPrefix("early") } == ["early a", "early b"])
        #expect(shown.entries.filter { $0.hasPrefix("late") } == ["late a", "late b"])
        #expect(server.asked.entries == ["api"])
    }

    @Test func `a class of the main actor is called back on it`() async throws {
        let (database, users) = (Database(), OperationQueueManager<Int>())
        let page = await UserPage(users: users, database: database)
        await page.open(7)
        await database.asked.answer(.success([7: User(name: "Ada")]))
        while await page.name == nil { await Task.yield() }
        #expect(await page.name == "Ada")
        await page.open(8)
        await page.close()
        #expect(users.snapshot.inFlight == 0)
    }

    private func url(_ city: String) throws -> URL {
        try #require(URL(string: "http://weather.example/\(city)"))
    }
}

private struct Broken: Error {}
