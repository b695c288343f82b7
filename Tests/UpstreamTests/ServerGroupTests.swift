import Dispatch
import Libevent
import Repeatable
import Telemetry
import Testing

@testable import Upstream

/// Who is ejected because of what, and what all loops share.
struct ServerGroupTests {
    private static let second: Int64 = 1_000_000_000

    private static func group(
        _ servers: Int, after former: ServerGroup? = nil, _ change: (inout UpstreamSettings) -> Void = { _ in }
    ) -> ServerGroup {
        var settings = UpstreamSettings(
            name: "origin", servers: (0..<servers).map { UpstreamServer(host: "192.0.2.\($0 + 1)") })
        settings.maxFailures = 3
        settings.failureCooldown = .seconds(10)
        change(&settings)
        return ServerGroup(settings, after: former)
    }

    /// - Returns: whether it was ejected.
    @discardableResult
    private static func fail(
        _ group: ServerGroup, _ place: Int, _ cause: FailureCause = .status(503), times: Int = 1, at now: Int64 = 0
    ) -> Bool {
        let entries = group.entries
        var isNews = false
        for _ in 0..<times {
            if group.failed(entries[place].place, cause, isOnly: entries.count == 1, at: now) != nil { isNews = true }
        }
        return isNews
    }

    private static func answer(_ group: ServerGroup, _ place: Int, times: Int = 1, at now: Int64 = 0) {
        let entries = group.entries
        for _ in 0..<times {
            _ = group.answered(entries[place].place, isOnly: entries.count == 1, probe: nil, at: now)
        }
    }

    private static func inUse(_ group: ServerGroup) -> [Bool] { group.entries.map(\.place.isInUse) }

    private static let refused = FailureCause.error(UpstreamError(.connect))

    @Test func `so many failures in a row eject a place, once`() {
        let group = Self.group(2)
        #expect(!Self.fail(group, 1, times: 2))
        Self.answer(group, 1)
        #expect(!Self.fail(group, 1, times: 2))
        #expect(Self.inUse(group) == [true, true])
        #expect(Self.fail(group, 1))
        #expect(Self.inUse(group) == [true, false])
        // Requests that were in flight fail as well.
        #expect(!Self.fail(group, 1, times: 5))
    }

    @Test(arguments: [(2, 1), (3, 1), (4, 2), (5, 2)])
    func `at most half of the places are ejected because of answers`(servers: Int, most: Int) {
        let group = Self.group(servers)
        for place in 0..<servers { Self.fail(group, place, times: 5) }
        #expect(Self.inUse(group).count { !$0 } == most)
        // One that nobody can connect to is of no use anyhow.
        for place in 0..<servers { Self.fail(group, place, Self.refused, times: 3) }
        #expect(Self.inUse(group).count { !$0 } == servers)
    }

    @Test func `a server whose only other is a backup may be ejected`() {
        let group = Self.group(2) { $0.servers[1].isBackup = true }
        #expect(Self.fail(group, 0, times: 3))
    }

    @Test func `a place that fails much more often than the others is ejected, at whatever order`() {
        let group = Self.group(3)
        for round in 0..<20 {
            for place in 0..<3 { Self.answer(group, place, times: 2, at: Int64(round)) }
            guard Self.inUse(group)[2] else { break }
            Self.fail(group, 2, at: Int64(round))
        }
        #expect(Self.inUse(group) == [true, true, false])
    }

    @Test func `a rate that all have ejects nobody`() {
        let group = Self.group(3)
        for _ in 0..<40 {
            for place in 0..<3 {
                Self.answer(group, place)
                Self.fail(group, place)
            }
        }
        #expect(Self.inUse(group) == [true, true, true])
    }

    @Test func `a few answers tell nothing of a rate`() {
        let group = Self.group(2)
        for _ in 0..<9 {
            Self.fail(group, 1)
            Self.answer(group, 1)
            Self.answer(group, 0, times: 20)
        }
        #expect(Self.inUse(group) == [true, true])
        Self.fail(group, 1)
        Self.answer(group, 1)
        Self.fail(group, 1)
        #expect(Self.inUse(group) == [true, false])
    }

    @Test func `after its return a place is not judged by what it did before`() {
        let group = Self.group(2) { $0.failureCooldown = .seconds(1) }
        for _ in 0..<40 {
            Self.answer(group, 0)
            Self.answer(group, 1)
            Self.fail(group, 1)
        }
        let place = group.entries[1].place
        #expect(!place.isInUse && group.claimProbe(place, isSafe: true, at: Self.second))
        #expect(group.answered(place, isOnly: false, probe: Self.second, at: Self.second) != nil)
        #expect(!Self.fail(group, 1, at: Self.second + 1))
    }

    @Test func `the only place is asked all the same, and the log is told when it fails and is back`() throws {
        let group = Self.group(1)
        #expect(Self.fail(group, 0, times: 3))
        let place = group.entries[0].place
        let news = group.answered(place, isOnly: true, probe: nil, at: 7)
        guard case .isBack(after: 7)? = news?.event else { return #expect(Bool(false), "\(String(describing: news))") }
        #expect(group.answered(place, isOnly: true, probe: nil, at: 8) == nil)
    }

    @Test func `only the probe brings back a place that has others`() {
        let group = Self.group(2)
        Self.fail(group, 1, times: 3)
        Self.answer(group, 1)
        #expect(Self.inUse(group) == [true, false])
        let (place, later) = (group.entries[1].place, 10 * Self.second)
        #expect(!group.claimProbe(place, isSafe: true, at: later - 1))
        #expect(group.claimProbe(place, isSafe: true, at: later))
        #expect(group.failed(place, .status(503), isOnly: false, probe: later, at: later) == nil)
        #expect(!group.claimProbe(place, isSafe: true, at: later + 19 * Self.second))
        #expect(group.claimProbe(place, isSafe: true, at: later + 20 * Self.second))
    }

    @Test func `when one comes back after all were away, the others may be tried at once`() {
        let group = Self.group(3)
        for place in 0..<3 { Self.fail(group, place, Self.refused, times: 3) }
        let entries = group.entries
        #expect(group.claimEarlyProbe(entries[0].place, of: 1, isSafe: true, at: Self.second))
        #expect(!group.claimEarlyProbe(entries[1].place, of: 1, isSafe: true, at: Self.second + 1))
        #expect(!group.claimProbe(entries[1].place, isSafe: true, at: Self.second + 1))
        #expect(group.answered(entries[0].place, isOnly: false, probe: Self.second, at: Self.second + 2) != nil)
        #expect(group.claimProbe(entries[1].place, isSafe: true, at: Self.second + 2))
    }

    // MARK: Names

    private static let addresses = (1...5).map { SocketAddress(literal: "198.51.100.\($0)", port: 80) }.compactMap {
        $0
    }

    @Test func `each address of a name is a place, and keeps its health over look-ups`() {
        let group = Self.group(1) { $0.servers = [UpstreamServer(host: "app.example")] }
        #expect(group.entries.map(\.place.addresses) == [[]])
        let before = group.generation
        group.change(addressesOf: 0, to: Array(Self.addresses[0..<3]))
        #expect(group.generation != before)
        #expect(group.entries.map(\.place.addresses) == Self.addresses[0..<3].map { [$0] })
        Self.fail(group, 1, times: 3)
        let present = group.generation
        group.change(addressesOf: 0, to: [Self.addresses[2], Self.addresses[1], Self.addresses[0]])
        #expect(group.generation == present, "the order in an answer means nothing")
        group.change(addressesOf: 0, to: [Self.addresses[4], Self.addresses[1]])
        #expect(group.entries.map(\.place.addresses) == [[Self.addresses[1]], [Self.addresses[4]]])
        #expect(Self.inUse(group) == [false, true])
        group.change(addressesOf: 0, to: [])
        #expect(group.entries.map(\.place.addresses) == [[]])
    }

    @Test func `addresses of both families are places in turn`() {
        let group = Self.group(1) { $0.servers = [UpstreamServer(host: "app.example")] }
        let others = ["2001:db8::1", "2001:db8::2"].compactMap { SocketAddress(literal: $0, port: 80) }
        group.change(addressesOf: 0, to: Self.addresses[0..<2] + others)
        let expected = [Self.addresses[0], others[0], Self.addresses[1], others[1]]
        #expect(group.entries.map(\.place.addresses) == expected.map { [$0] })
    }

    @Test func `the two loopback addresses are one place`() throws {
        let group = Self.group(1) { $0.servers = [UpstreamServer(host: "localhost")] }
        let both = try [
            #require(SocketAddress(literal: "127.0.0.1", port: 80)), #require(SocketAddress(literal: "::1", port: 80)),
        ]
        group.change(addressesOf: 0, to: both)
        #expect(group.entries.map(\.place.addresses) == [both])
    }

    @Test func `the news names an address only if its server has others`() throws {
        let group = Self.group(1) { $0.servers = [UpstreamServer(host: "app.example")] }
        group.change(addressesOf: 0, to: Array(Self.addresses[0..<2]))
        let place = group.entries[0].place
        let news = try #require(group.failed(place, Self.refused, isOnly: false, isCertain: true, at: 0))
        #expect(news.address == Self.addresses[0] && news.server == UpstreamServer(host: "app.example"))
    }

    // MARK: Checks, drain, reload

    @Test func `checks and the operator decide whatever the number of places`() {
        let group = Self.group(2) {
            $0.health = HealthSettings(path: "/up")
            $0.health?.failures = 1
        }
        let entries = group.entries
        for entry in entries { #expect(group.checked(entry.place, .failure("500"), at: 1) != nil) }
        #expect(Self.inUse(group) == [false, false])
        #expect(group.states(at: 2).map(\.condition) == [.down, .down])
        #expect(group.states(at: 2).map { "\($0.cause.map { "\($0)" } ?? "")" } == ["check: 500", "check: 500"])
        #expect(group.checked(entries[0].place, .success, at: 3) == nil)
        #expect(group.checked(entries[0].place, .success, at: 4) != nil)
        #expect(Self.inUse(group) == [true, false])
    }

    @Test func `what checks found is forgotten with them`() {
        let group = Self.group(2) {
            $0.health = HealthSettings(path: "/up")
            $0.health?.failures = 1
        }
        for entry in group.entries { _ = group.checked(entry.place, .failure("500"), at: 1) }
        let next = Self.group(2, after: group)
        #expect(Self.inUse(next) == [false, false])
        next.forgetChecks(at: 2)
        #expect(Self.inUse(next) == [true, true])
        #expect(next.states(at: 3).allSatisfy { $0.condition == .up && $0.lastCheck == nil && $0.changedAt == 2 })
    }

    @Test func `a drained server stays so with new addresses and new settings`() {
        let name = UpstreamServer(host: "app.example")
        let group = Self.group(1) { $0.servers = [name, UpstreamServer(host: "192.0.2.9")] }
        let before = group.generation
        #expect(group.drain(.server(name.location), true, at: 0))
        #expect(group.generation != before)
        #expect(!group.drain(.server(.unix(path: "/none")), true, at: 0))
        group.change(addressesOf: 0, to: Array(Self.addresses[0..<2]))
        #expect(Self.inUse(group) == [false, false, true])
        let next = Self.group(1, after: group) { settings in
            settings.servers = [UpstreamServer(host: "192.0.2.7"), name]
            settings.servers[1].weight = 5
        }
        #expect(next.entries.map(\.server) == [0, 1, 1])
        #expect(Self.inUse(next) == [true, false, false])
        #expect(next.drain(.server(name.location), false, at: 1))
        #expect(Self.inUse(next) == [true, true, true])
    }

    @Test func `a server that has requests again has them at each address, also at one that comes back later`() {
        let name = UpstreamServer(host: "app.example")
        let group = Self.group(1) { $0.servers = [name, UpstreamServer(host: "192.0.2.9")] }
        group.change(addressesOf: 0, to: Array(Self.addresses[0..<2]))
        #expect(group.drain(.address(Self.addresses[0]), true, at: 0))
        #expect(Self.inUse(group) == [false, true, true])
        group.change(addressesOf: 0, to: [Self.addresses[1]])
        _ = group.drain(.server(name.location), false, at: 1)
        group.change(addressesOf: 0, to: Array(Self.addresses[0..<2]))
        #expect(Self.inUse(group) == [true, true, true])
    }

    @Test func `an address that two names share is drained at both`() {
        let names = [UpstreamServer(host: "a.example"), UpstreamServer(host: "b.example")]
        let group = Self.group(1) { $0.servers = names }
        for server in 0..<2 { group.change(addressesOf: server, to: Array(Self.addresses[0..<2])) }
        #expect(group.drain(.address(Self.addresses[0]), true, at: 0))
        #expect(Self.inUse(group).count { !$0 } == 2)
        #expect(group.drain(.address(Self.addresses[0]), false, at: 1))
        #expect(Self.inUse(group) == [true, true, true, true])
    }

    @Test func `a program that drains believes the last checks as long as a server is in use`() {
        let group = Self.group(2) {
            $0.health = HealthSettings(path: "/up")
            $0.health?.failures = 1
        }
        _ = group.checked(group.entries[0].place, .failure("500"), at: 1)
        #expect(!group.forgetEndedChecks(at: 2))
        group.endChecks(at: 2)
        #expect(Self.inUse(group) == [false, true] && !group.forgetEndedChecks(at: 3))
        // By its answers, as no check follows.
        Self.fail(group, 1, Self.refused, times: 3, at: 3)
        #expect(Self.inUse(group) == [false, false] && group.forgetEndedChecks(at: 4))
        #expect(Self.inUse(group) == [true, false] && !group.forgetEndedChecks(at: 5))
    }

    @Test func `a program that drains believes no check if no server is in use`() {
        let group = Self.group(2) {
            $0.health = HealthSettings(path: "/up")
            $0.health?.failures = 1
        }
        for entry in group.entries { _ = group.checked(entry.place, .failure("500"), at: 1) }
        group.endChecks(at: 2)
        #expect(Self.inUse(group) == [true, true])
    }

    /// Two names that share their addresses.
    private static func twoNames() -> ServerGroup {
        let group = Self.group(1) {
            $0.servers = [UpstreamServer(host: "a.example"), UpstreamServer(host: "b.example")]
        }
        for server in 0..<2 { group.change(addressesOf: server, to: Array(addresses[0..<2])) }
        return group
    }

    /// The name loses the address, and gets it back.
    private static func renew(_ group: ServerGroup, _ server: Int, without address: Int) {
        group.change(addressesOf: server, to: Array(addresses[0..<2].filter { $0 != addresses[address] }))
        group.change(addressesOf: server, to: Array(addresses[0..<2]))
    }

    /// Whether each of both addresses gets requests at the server.
    private static func inUse(_ group: ServerGroup, _ server: Int) -> [Bool] {
        addresses[0..<2].map { address in
            group.entries.contains { $0.server == server && $0.place.addresses == [address] && $0.place.isInUse }
        }
    }

    @Test func `an address stays drained that its name does not have while another server gets requests again`() {
        let group = Self.twoNames()
        #expect(group.drain(.address(Self.addresses[0]), true, at: 0))
        for server in 0..<2 { group.change(addressesOf: server, to: [Self.addresses[1]]) }
        _ = group.drain(.server(group.settings.servers[1].location), false, at: 1)
        for server in 0..<2 { group.change(addressesOf: server, to: Array(Self.addresses[0..<2])) }
        #expect(Self.inUse(group, 0) == [false, true] && Self.inUse(group, 1) == [true, true])
    }

    @Test func `a server that has requests again keeps them at an address that stays drained at another`() {
        let group = Self.twoNames()
        #expect(group.drain(.address(Self.addresses[0]), true, at: 0))
        #expect(group.drain(.server(group.settings.servers[0].location), false, at: 1))
        for server in 0..<2 { Self.renew(group, server, without: 0) }
        #expect(Self.inUse(group, 0) == [true, true] && Self.inUse(group, 1) == [false, true])
    }

    @Test func `what stays drained of one server is not drained at another`() {
        let group = Self.twoNames()
        #expect(group.drain(.server(group.settings.servers[0].location), true, at: 0))
        #expect(group.drain(.address(Self.addresses[0]), false, at: 1))
        for server in 0..<2 { Self.renew(group, server, without: 1) }
        #expect(Self.inUse(group, 0) == [true, false] && Self.inUse(group, 1) == [true, true])
    }

    @Test func `of a drained server, an address that has requests again leaves only the others drained`() {
        let name = UpstreamServer(host: "app.example")
        let group = Self.group(1) { $0.servers = [name, UpstreamServer(host: "192.0.2.9")] }
        group.change(addressesOf: 0, to: Array(Self.addresses[0..<2]))
        #expect(group.drain(.server(name.location), true, at: 0))
        #expect(group.drain(.address(Self.addresses[1]), false, at: 1))
        #expect(
            group.entries.map { $0.place.addresses.contains(Self.addresses[1]) }.firstIndex(of: true).map {
                Self.inUse(group)[$0]
            } == true)
        #expect(Self.inUse(group).count { $0 } == 2)
        // A new address of the name is not drained, one that was drained is.
        group.change(addressesOf: 0, to: [Self.addresses[0], Self.addresses[2]])
        let states = group.entries.map { ($0.place.addresses.first, $0.place.isInUse) }
        #expect(states.first { $0.0 == Self.addresses[0] }?.1 == false)
        #expect(states.first { $0.0 == Self.addresses[2] }?.1 == true)
    }

    @Test func `servers that cannot answer do not keep a failing one in use`() {
        // One is drained, one takes no connection, one is in health, and one answers 503.
        let group = Self.group(4)
        let places = group.entries.map(\.place)
        #expect(group.drain(.server(places[0].server.location), true, at: 0))
        for _ in 0..<3 { _ = group.failed(places[1], .error(UpstreamError(.connect)), isOnly: false, at: 1) }
        for _ in 0..<3 { _ = group.failed(places[2], .status(503), isOnly: false, at: 1) }
        #expect(Self.inUse(group) == [false, false, false, true])
        // The last one that could answer stays.
        for _ in 0..<3 { _ = group.failed(places[3], .status(503), isOnly: false, at: 1) }
        #expect(Self.inUse(group) == [false, false, false, true])
    }

    @Test func `new settings take over the places that stay`() {
        let group = Self.group(3)
        Self.fail(group, 2, times: 3)
        let next = Self.group(5, after: group) { $0.maxFailures = 9 }
        #expect(Self.inUse(next) == [true, true, false, true, true])
        #expect(zip(group.entries, next.entries).allSatisfy { $0.place === $1.place })
    }

    @Test func `after any number of threads nothing is left in flight`() {
        let group = Self.group(3) {
            $0.balance = .leastRequests
            $0.health = HealthSettings(path: "/up")
        }
        DispatchQueue.concurrentPerform(iterations: 4) { thread in
            var random = SeededGenerator(ofTest: UInt64(thread))
            var choice = ServerChoice(group, startingAt: thread)
            for index in 0..<4000 * Rounds.count {
                let now = Int64(index) * 1_000_000
                _ = choice.update()
                guard case .place(let at, let probe) = choice.pick(.init(), at: now, random: &random) else { continue }
                let place = choice.entries[at].place
                place.begin()
                _ = group.budget.take(at: now)
                switch Int.random(in: 0..<8, using: &random) {
                case 0...2: _ = group.failed(place, .status(503), isOnly: false, probe: probe, at: now)
                case 3: if let probe { group.undecided(place, probe: probe, at: now) }
                case 4: _ = group.checked(place, index % 3 == 0 ? .success : .failure("500"), at: now)
                case 5: _ = group.drain(.server(place.server.location), index % 2 == 0, at: now)
                default: _ = group.answered(place, isOnly: false, probe: probe, at: now)
                }
                place.noteLatency(Int64(index + 1), at: now)
                place.end()
            }
        }
        #expect(group.entries.map(\.place.requestsInFlight) == [0, 0, 0])
    }
}
