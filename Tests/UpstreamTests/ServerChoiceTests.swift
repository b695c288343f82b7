import Repeatable
import Telemetry
import Testing

@testable import Upstream

/// Which place a request is sent to.
struct ServerChoiceTests {
    private static let second: Int64 = 1_000_000_000

    private static func group(
        weights: [Int], backups: Set<Int> = [], _ change: (inout UpstreamSettings) -> Void = { _ in }
    ) -> ServerGroup {
        var settings = UpstreamSettings(name: "origin", servers: [])
        for (index, weight) in weights.enumerated() {
            var server = UpstreamServer(host: "192.0.2.\(index + 1)")
            server.weight = weight
            server.isBackup = backups.contains(index)
            settings.servers.append(server)
        }
        settings.maxFailures = 1
        change(&settings)
        return ServerGroup(settings)
    }

    private static func eject(
        _ group: ServerGroup, _ places: Int..., because cause: FailureCause = .error(UpstreamError(.connect)),
        at now: Int64 = 0
    ) {
        for place in places { _ = group.failed(group.entries[place].place, cause, isOnly: false, at: now) }
    }

    private var random = SeededGenerator(seed: 1)

    private mutating func picks(_ choice: inout ServerChoice, _ count: Int, at now: Int64 = 0) -> [Int?] {
        (0..<count).map { _ in
            guard case .place(let index, _) = choice.pick(.init(), at: now, random: &random) else { return nil }
            return index
        }
    }

    private mutating func expect(_ choice: inout ServerChoice, picks expected: [Int?], at now: Int64 = 0) {
        let seen = picks(&choice, expected.count, at: now)
        #expect(seen == expected)
    }

    private mutating func expect(
        _ choice: inout ServerChoice, _ asked: ServerChoice.Asked, at now: Int64, is expected: ServerChoice.Pick
    ) {
        let pick = choice.pick(asked, at: now, random: &random)
        #expect(pick == expected)
    }

    // MARK: In turn

    @Test(arguments: [
        ([1, 1, 1], [0, 1, 2, 0, 1, 2]), ([1], [0, 0, 0]), ([5, 1, 1], [0, 0, 1, 0, 2, 0, 0]),
        ([2, 1], [0, 1, 0, 0, 1, 0]),
    ])
    mutating func `places are asked in turn, in proportion to their weights`(weights: [Int], expected: [Int]) {
        var choice = ServerChoice(Self.group(weights: weights))
        expect(&choice, picks: expected)
    }

    @Test mutating func `each loop begins with another place`() {
        let group = Self.group(weights: [1, 1, 1])
        let firsts = (0..<4).map { loop in
            var choice = ServerChoice(group, startingAt: loop)
            return picks(&choice, 1)[0]
        }
        #expect(firsts == [0, 1, 2, 0])
    }

    @Test mutating func `a place that is away is passed over, and the others go on in turn`() {
        let group = Self.group(weights: [1, 1, 1])
        var choice = ServerChoice(group)
        Self.eject(group, 1)
        expect(&choice, picks: [0, 2, 0, 2])
    }

    @Test mutating func `a request does not ask again what it asked in vain`() {
        let group = Self.group(weights: [1, 1, 1])
        var choice = ServerChoice(group)
        let tried = [0, 1].map { group.entries[$0].place.number }
        for _ in 0..<3 {
            let pick = choice.pick(.init(tried: tried), at: 0, random: &random)
            #expect(pick == .place(2, probe: nil))
        }
        #expect(choice.hasUsable(besides: tried))
        #expect(!choice.hasUsable(besides: group.entries.map(\.place.number)))
    }

    @Test mutating func `a backup is asked only while no other is usable`() {
        let group = Self.group(weights: [1, 1, 1], backups: [0])
        var choice = ServerChoice(group)
        expect(&choice, picks: [1, 2, 1, 2])
        Self.eject(group, 1)
        expect(&choice, picks: [2, 2])
        Self.eject(group, 2)
        expect(&choice, picks: [0, 0])
    }

    // MARK: Probes

    @Test mutating func `a copy of one request is the probe, and all requests pass the place over`() {
        let group = Self.group(weights: [1, 1])
        var choice = ServerChoice(group)
        Self.eject(group, 1)
        let later = 10 * Self.second
        #expect(choice.placeToProbe(besides: 0, .init(), at: later - 1) == nil)
        #expect(choice.placeToProbe(besides: 0, .init(mayProbe: false), at: later) == nil)
        #expect(choice.placeToProbe(besides: 0, .init(mayBeCopied: false), at: later) == nil)
        expect(&choice, .init(), at: later, is: .place(0, probe: nil))
        #expect(choice.placeToProbe(besides: 0, .init(), at: later) == 1)
        // Over 65 seconds, as long as it may last, it is the only one, whatever the request.
        for time in [0, 10, 20, 64] as [Int64] {
            let now = later + time * Self.second
            #expect(choice.placeToProbe(besides: 0, .init(), at: now) == nil)
            expect(&choice, .init(isSafe: false, mayBeCopied: false), at: now, is: .place(0, probe: nil))
        }
        _ = group.answered(group.entries[1].place, isOnly: false, probe: later, at: later + 1)
        let seen = Set(picks(&choice, 2, at: later + 1))
        #expect(seen == [0, 1])
    }

    private static let unsafe = ServerChoice.Asked(isSafe: false, mayBeCopied: false)
    private static let largeQuery = ServerChoice.Asked(isSafe: true, mayBeCopied: false)
    private static let refused = FailureCause.error(UpstreamError(.connect))
    private static let silent = FailureCause.error(UpstreamError(.connectTimeout))

    @Test(
        arguments: [
            (unsafe, refused, 10), (unsafe, silent, 20), (unsafe, .status(503), 20), (largeQuery, .status(503), 20),
        ] as [(ServerChoice.Asked, FailureCause, Int64)])
    mutating func `a request that may not be copied is a probe if that takes no time, or if no copy came for long`(
        asked: ServerChoice.Asked, cause: FailureCause, after: Int64
    ) {
        let group = Self.group(weights: [1, 1])
        var choice = ServerChoice(group)
        Self.eject(group, 1, because: cause)
        let time = after * Self.second
        expect(&choice, asked, at: time - 1, is: .place(0, probe: nil))
        expect(&choice, asked, at: time, is: .place(1, probe: time))
    }

    @Test mutating func `while no other place is in use, the request is the probe`() {
        let group = Self.group(weights: [1, 1, 1], backups: [2])
        var choice = ServerChoice(group)
        Self.eject(group, 0, 1)
        let later = 10 * Self.second
        // The backup is another place.
        expect(&choice, .init(), at: later, is: .place(2, probe: nil))
        Self.eject(group, 2, at: later)
        expect(&choice, .init(), at: later, is: .place(0, probe: later))
        expect(&choice, .init(), at: later, is: .place(1, probe: later))
    }

    @Test mutating func `a backup is probed only beside a backup`() {
        let group = Self.group(weights: [1, 1, 1], backups: [1, 2])
        let choice = ServerChoice(group)
        Self.eject(group, 1)
        #expect(choice.placeToProbe(besides: 0, .init(), at: 10 * Self.second) == nil)
        #expect(choice.placeToProbe(besides: 2, .init(), at: 10 * Self.second) == 1)
    }

    @Test mutating func `without a place, one request in half a second is an early probe, and the others know when`() {
        let group = Self.group(weights: [1, 1])
        var choice = ServerChoice(group)
        Self.eject(group, 0, at: 0)
        Self.eject(group, 1, at: Self.second)
        let now = 2 * Self.second
        expect(&choice, .init(), at: now, is: .place(0, probe: now))
        let pick = choice.pick(.init(), at: now, random: &random)
        #expect(pick == .none(next: 11 * Self.second))
        _ = group.failed(
            group.entries[0].place, .error(UpstreamError(.connect)), isOnly: false, probe: now, at: now)
        expect(&choice, .init(), at: now, is: .none(next: 10 * Self.second))
        // The other one's turn.
        let next = now + PlaceHealth.earlyInterval / 2
        expect(&choice, .init(), at: next - 1, is: .none(next: 10 * Self.second))
        expect(&choice, .init(), at: next, is: .place(1, probe: next))
    }

    @Test func `the only place gets no copy beside its requests`() {
        let group = Self.group(weights: [1])
        let choice = ServerChoice(group)
        _ = group.failed(group.entries[0].place, Self.refused, isOnly: true, isCertain: true, at: 0)
        #expect(!group.entries[0].place.isInUse)
        #expect(choice.placeToProbe(besides: 0, .init(), at: 10 * Self.second) == nil)
    }

    @Test mutating func `a lone place is asked while it fails, not while it is down or drained`() {
        let group = Self.group(weights: [1])
        var choice = ServerChoice(group)
        _ = group.failed(group.entries[0].place, .error(UpstreamError(.connect)), isOnly: true, at: 0)
        expect(&choice, picks: [0, 0])
        _ = group.drain(.server(group.entries[0].place.server.location), true, at: 0)
        expect(&choice, picks: [nil])
    }

    // MARK: Slow start

    @Test mutating func `the share of a place that is back grows to its full size`() {
        let group = Self.group(weights: [1, 1]) { $0.slowStart = .seconds(10) }
        var choice = ServerChoice(group)
        Self.eject(group, 1)
        let back = 10 * Self.second
        _ = group.claimProbe(group.entries[1].place, isSafe: true, at: back)
        _ = group.answered(group.entries[1].place, isOnly: false, probe: back, at: back)
        let shares = [0, 2, 5, 9, 10].map { second in
            picks(&choice, 110, at: back + second * Self.second).count { $0 == 1 }
        }
        // A tenth of the weight is one of eleven requests; a half is one of three.
        #expect(shares[0] == 10 && (17...20).contains(shares[1]) && (35...38).contains(shares[2]), "\(shares)")
        #expect((50...54).contains(shares[3]) && shares[4] == 55, "\(shares)")
        #expect(group.states(at: back).map(\.condition) == [.up, .slowStart])
    }

    // MARK: Least requests

    @Test mutating func `the one of two with fewer requests for its weight is asked`() {
        let group = Self.group(weights: [1, 1, 3]) { $0.balance = .leastRequests }
        var choice = ServerChoice(group)
        for _ in 0..<4 { group.entries[0].place.begin() }
        for _ in 0..<2 { group.entries[1].place.begin() }
        for _ in 0..<4 { group.entries[2].place.begin() }
        let counts = picks(&choice, 300).reduce(into: [0, 0, 0]) { $0[$1 ?? 0] += 1 }
        // The first is the worse one of any two, the last is the better one of any two.
        #expect(counts[0] == 0 && counts[1] > 60 && counts[2] > counts[1], "\(counts)")
    }

    @Test mutating func `of two with as many requests, either one is asked, in proportion to its weight`() {
        let group = Self.group(weights: [1, 3]) { $0.balance = .leastRequests }
        var choice = ServerChoice(group)
        // Nearly as fast as the other one.
        group.entries[0].place.noteLatency(19_000_000, at: 0)
        group.entries[1].place.noteLatency(10_000_000, at: 0)
        let counts = picks(&choice, 4000).reduce(into: [0, 0]) { $0[$1 ?? 0] += 1 }
        #expect((800...1200).contains(counts[0]), "\(counts)")
    }

    @Test mutating func `of two with as many requests, a much faster one is asked, until the slow one was long ago`() {
        let group = Self.group(weights: [1, 1]) { $0.balance = .leastRequests }
        var choice = ServerChoice(group)
        group.entries[0].place.noteLatency(80_000_000, at: 0)
        group.entries[1].place.noteLatency(10_000_000, at: 0)
        let seen = Set(picks(&choice, 20))
        #expect(seen == [1])
        group.entries[1].place.noteLatency(100_000_000, at: 50 * Self.second)
        let later = Set(picks(&choice, 20, at: 50 * Self.second))
        #expect(later == [0])
        #expect(group.entries[0].place.latency(at: 50 * Self.second) == 2_500_000)
    }

    @Test func `a place that was slow long ago is not held for slow after one more response`() {
        let place = Self.group(weights: [1]).entries[0].place
        place.noteLatency(1_000_000_000, at: 0)
        place.noteLatency(8_000_000, at: 100 * Self.second)
        #expect(place.latency(at: 100 * Self.second).map { $0 < 2_000_000 } == true)
    }

    @Test func `the average takes an eighth of each new time`() {
        let place = Self.group(weights: [1]).entries[0].place
        #expect(place.latency(at: 0) == nil)
        place.noteLatency(800, at: 0)
        place.noteLatency(1600, at: 0)
        #expect(place.latency(at: 0) == 900)
    }

    // MARK: By key

    private static func owners(_ group: ServerGroup, _ keys: Int = 10_000) -> [Int] {
        var choice = ServerChoice(group)
        var random = SeededGenerator(seed: 2)
        return (0..<keys).map { number in
            let key = Rendezvous.hash("http://www.example/page/\(number)".utf8)
            guard case .place(let index, _) = choice.pick(.init(mayProbe: false, key: key), at: 0, random: &random)
            else {
                return -1
            }
            return index
        }
    }

    @Test func `if a server leaves, only its keys move, and they come back with it`() {
        let group = Self.group(weights: [1, 1, 1, 1, 1]) { $0.balance = .hash }
        let before = Self.owners(group)
        let counts = before.reduce(into: [0, 0, 0, 0, 0]) { $0[$1] += 1 }
        #expect(counts.allSatisfy { (1800...2200).contains($0) }, "\(counts)")
        let gone = group.entries[3].place
        _ = group.drain(.server(gone.server.location), true, at: 0)
        let without = Self.owners(group)
        let moved = zip(before, without).count { $0 != $1 }
        #expect(moved == counts[3] && moved <= 2500)
        // To all of the others.
        #expect(Set(zip(before, without).filter { $0 != $1 }.map(\.1)) == [0, 1, 2, 4])
        _ = group.drain(.server(gone.server.location), false, at: 0)
        #expect(Self.owners(group) == before)
    }

    @Test func `keys are shared in proportion to the weights`() {
        let counts = Self.owners(Self.group(weights: [1, 2, 5]) { $0.balance = .hash })
            .reduce(into: [0, 0, 0]) { $0[$1] += 1 }
        #expect((1150...1350).contains(counts[0]) && (2350...2650).contains(counts[1]), "\(counts)")
    }

    @Test func `keys belong to the same servers on each machine`() {
        #expect(
            Self.owners(Self.group(weights: [1, 1, 1, 1, 1]) { $0.balance = .hash }, 12) == [
                2, 2, 1, 4, 0, 0, 4, 4, 2, 3, 4, 1,
            ])
        #expect(Rendezvous.hash("a".utf8) == Rendezvous.hash([UInt8(ascii: "a")][...]))
    }

    // MARK: A list that changes

    @Test mutating func `places that stay keep their turns`() {
        let group = Self.group(weights: [1, 1, 1]) { $0.servers[1] = UpstreamServer(host: "app.example") }
        var choice = ServerChoice(group)
        expect(&choice, picks: [0])
        let isChanged = choice.update()
        #expect(!isChanged)
        let addresses = Self.group(weights: [1, 1]).entries.flatMap(\.place.addresses)
        group.change(addressesOf: 1, to: addresses)
        let isChangedNow = choice.update()
        #expect(isChangedNow)
        #expect(choice.entries.map(\.server) == [0, 1, 1, 2])
        let last = picks(&choice, 4).last
        #expect(last == 0)
    }
}
