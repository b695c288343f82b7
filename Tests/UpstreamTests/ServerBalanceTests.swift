import Testing

@testable import Upstream

/// Which server is asked, as a transcript: events and picks one after another, at times that the table names.
@Suite struct ServerBalanceTests {
    enum Event: Sendable {
        /// `pick` at this time gives that server.
        case pick(at: Int64, Int)
        /// The same for a request that asked those in vain.
        case pickBesides([Int], at: Int64, Int)
        /// The same, of a request that tries a server, or does not.
        case tries(Bool, at: Int64, Int)
        /// What began to try that server at this time ends without a verdict.
        case undecided(Int, since: Int64, at: Int64)
        case failed(Int, at: Int64)
        case succeeded(Int)
    }

    struct Transcript: Sendable, CustomTestStringConvertible {
        let testDescription: String
        var servers = 3
        var maxFailures = 2
        let events: [Event]

        init(_ what: String, servers: Int = 3, maxFailures: Int = 2, _ events: Event...) {
            testDescription = what
            self.servers = servers
            self.maxFailures = maxFailures
            self.events = events
        }
    }

    static let cooldown: Int64 = 100

    @Test(arguments: [
        Transcript("one server is always asked", servers: 1, .pick(at: 0, 0), .pick(at: 0, 0)),
        Transcript("servers are asked in turn", .pick(at: 0, 0), .pick(at: 0, 1), .pick(at: 0, 2), .pick(at: 0, 0)),
        Transcript(
            "fewer failures than leave one alone change nothing",
            .failed(1, at: 0), .pick(at: 0, 0), .pick(at: 0, 1), .pick(at: 0, 2)),
        Transcript(
            "so many failures in a row leave one alone, and the others go on in turn",
            .failed(1, at: 0), .failed(1, at: 5),
            .pick(at: 5, 0), .pick(at: 6, 2), .pick(at: 7, 0), .pick(at: 8, 2)),
        Transcript(
            "a success between them begins the count anew",
            .failed(1, at: 0), .succeeded(1), .failed(1, at: 5), .pick(at: 5, 0), .pick(at: 5, 1), .pick(at: 5, 2)),
        Transcript(
            "failures of two servers are not those of one",
            .failed(0, at: 0), .failed(1, at: 0), .pick(at: 0, 0), .pick(at: 0, 1), .pick(at: 0, 2)),
        Transcript(
            "it is left alone from its latest failure, to the cool-down's very end", servers: 2,
            .failed(0, at: 0), .failed(0, at: 10),
            .pick(at: 100, 1), .pick(at: 109, 1), .pick(at: 110, 0), .pick(at: 110, 1)),
        Transcript(
            "after the cool-down one more failure leaves it alone again", servers: 2,
            .failed(0, at: 0), .failed(0, at: 0), .pick(at: 100, 0), .failed(0, at: 101),
            .pick(at: 102, 1), .pick(at: 200, 1), .pick(at: 201, 0)),
        Transcript(
            "after the cool-down one request tries it, and another only if that one ends without a word", servers: 2,
            .failed(0, at: 0), .failed(0, at: 0), .pick(at: 100, 0), .pick(at: 101, 1), .pick(at: 102, 1),
            .pick(at: 199, 1), .pick(at: 200, 0)),
        Transcript(
            "a try that ends without a verdict costs as long again as it took", servers: 2, maxFailures: 1,
            .failed(0, at: 0), .tries(true, at: 100, 0), .tries(false, at: 101, 1), .undecided(0, since: 100, at: 110),
            .tries(false, at: 111, 1), .tries(false, at: 119, 1), .tries(true, at: 120, 0),
            .undecided(0, since: 120, at: 120), .tries(false, at: 120, 1), .tries(true, at: 120, 0),
            .tries(false, at: 121, 1)),
        Transcript(
            "a try without a verdict never costs more than a cool-down", servers: 2, maxFailures: 1,
            .failed(0, at: 0), .pick(at: 100, 0), .undecided(0, since: 100, at: 190), .pick(at: 199, 1),
            .tries(true, at: 200, 0)),
        Transcript(
            "of several tries, only the last counts", servers: 2, maxFailures: 1,
            .failed(0, at: 0), .pick(at: 100, 0), .pick(at: 200, 1), .tries(true, at: 200, 0),
            .undecided(0, since: 100, at: 201),
            .tries(false, at: 299, 1), .tries(true, at: 300, 0)),
        Transcript(
            "a try without a verdict takes back neither a failure nor a success that others had meanwhile", servers: 2,
            maxFailures: 1,
            .failed(0, at: 0), .pick(at: 100, 0), .failed(0, at: 105), .undecided(0, since: 100, at: 106),
            .tries(false, at: 204, 1), .tries(true, at: 205, 0), .succeeded(0), .undecided(0, since: 205, at: 206),
            .tries(false, at: 206, 1), .tries(false, at: 206, 0)),
        Transcript(
            "who is asked because all are left alone tries nothing", servers: 1, maxFailures: 1,
            .failed(0, at: 0), .tries(false, at: 1, 0), .tries(true, at: 100, 0), .tries(false, at: 101, 0)),
        Transcript(
            "after the cool-down a success makes it as good as new", servers: 2,
            .failed(0, at: 0), .failed(0, at: 0), .pick(at: 100, 0), .succeeded(0), .failed(0, at: 101),
            .pick(at: 102, 1), .pick(at: 102, 0)),
        Transcript(
            "an answer that was on its way ends the cool-down", servers: 2,
            .failed(0, at: 0), .failed(0, at: 0), .succeeded(0), .pick(at: 1, 0), .pick(at: 1, 1)),
        Transcript(
            "all left alone: the one whose time is over soonest", servers: 3, maxFailures: 1,
            .failed(0, at: 3), .failed(1, at: 1), .failed(2, at: 2), .pick(at: 4, 1), .pick(at: 4, 1),
            .failed(1, at: 4), .pick(at: 4, 2), .pick(at: 101, 2)),
        Transcript(
            "a request passes over all that it asked in vain, whoever was asked meanwhile",
            .pick(at: 0, 0), .pick(at: 0, 1), .pick(at: 0, 2), .pickBesides([0], at: 0, 1), .pick(at: 0, 2),
            .pickBesides([0, 1], at: 0, 2)),
        Transcript(
            "rather asks one that is left alone than one of those twice", maxFailures: 1,
            .failed(2, at: 0), .pick(at: 1, 0), .pickBesides([0], at: 1, 1), .pickBesides([0, 1], at: 1, 2)),
    ])
    func `the next server is the one in the table`(_ transcript: Transcript) {
        var balance = ServerBalance(
            servers: transcript.servers, maxFailures: transcript.maxFailures, cooldown: Self.cooldown)
        for (step, event) in transcript.events.enumerated() {
            switch event {
            case .tries(let isTry, let now, let expected):
                let picked = balance.pick(at: now)
                let wanted = ServerBalance.Pick(server: expected, tryBegan: isTry ? now : nil)
                #expect(picked == wanted, "step \(step + 1), at \(now)")
            case .undecided(let server, let began, let now): balance.undecided(server, tryBegan: began, at: now)
            case .failed(let server, let now): _ = balance.failed(server, at: now)
            case .succeeded(let server): _ = balance.succeeded(server, at: 0)
            case .pick(let now, let expected):
                let picked = balance.pick(at: now).server
                #expect(picked == expected, "step \(step + 1), at \(now)")
            case .pickBesides(let others, let now, let expected):
                let picked = balance.pick(at: now, besides: others).server
                #expect(picked == expected, "step \(step + 1), at \(now)")
            }
        }
    }

    @Test(arguments: [(0, [0, 1, 2, 0]), (2, [2, 0, 1, 2]), (4, [1, 2, 0, 1])])
    func `the balance begins with the given server, and the others follow in turn`(first: Int, expected: [Int]) {
        var balance = ServerBalance(servers: 3, startingAt: first, maxFailures: 1, cooldown: Self.cooldown)
        let picked = (0..<4).map { _ in balance.pick(at: 0).server }
        #expect(picked == expected)
    }

    @Test func `a server's failure is news once, until the server is back`() {
        var balance = ServerBalance(servers: 2, maxFailures: 2, cooldown: Self.cooldown)
        let news = [
            balance.failed(0, at: 0), balance.failed(0, at: 1), balance.failed(0, at: 2), balance.succeeded(0, at: 2),
            balance.succeeded(0, at: 2), balance.failed(0, at: 3),
            balance.succeeded(0, at: 3), balance.failed(0, at: 4), balance.failed(0, at: 5),
        ]
        #expect(news == [false, true, false, true, false, false, false, false, true])
    }

    @Test func `a server's state is up, failing since, or up since`() {
        var balance = ServerBalance(servers: 2, maxFailures: 2, cooldown: Self.cooldown)
        var told = [balance.state(of: 1, at: 0)]
        _ = balance.failed(1, at: 5)
        told.append(balance.state(of: 1, at: 5))
        _ = balance.failed(1, at: 6)
        told.append(balance.state(of: 1, at: 105))
        // A whole cool-down in which it did not find it failing.
        told.append(balance.state(of: 1, at: 106))
        // Tried again in vain: nothing new, but the next try.
        _ = balance.failed(1, at: 200)
        told.append(balance.state(of: 1, at: 200))
        _ = balance.succeeded(1, at: 300)
        told.append(balance.state(of: 1, at: 300))
        _ = balance.failed(1, at: 400)
        _ = balance.succeeded(1, at: 401)
        told.append(balance.state(of: 1, at: 402))
        let failing = ServerState(isUp: false, changedAt: 6, failingLoops: 1, nextTry: 106)
        var overdue = failing
        overdue.outdatedBy = 6
        let still = ServerState(isUp: false, changedAt: 6, failingLoops: 1, nextTry: 300)
        let back = ServerState(isUp: true, changedAt: 300, answeredAt: 300)
        let stays = ServerState(isUp: true, changedAt: 300, answeredAt: 401)
        #expect(told == [ServerState(), ServerState(), failing, overdue, still, back, stays])
        #expect(balance.state(of: 0, at: 402) == ServerState())
    }
}
