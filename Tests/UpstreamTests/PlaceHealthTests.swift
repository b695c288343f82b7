import Telemetry
import Testing

@testable import Upstream

/// When a place is away, and until when, as a transcript.
struct PlaceHealthTests {
    enum Step: Sendable {
        case eject(FailureCause = .status(503), least: Int64 = 0)
        case claim(Bool, isSafe: Bool = true)
        case claimEarly(Bool, isSafe: Bool = true)
        case probeFails(since: Int64)
        case undecided(since: Int64)
        case returns(Bool)
        case checkFails(CheckChange?), checkSucceeds(CheckChange?)
        case drain(Bool)
        /// Until when it is away; `nil`: it is in use; `.max`: without an end.
        case isAway(until: Int64?)
        case is_(PlaceState.Condition)

        typealias CheckChange = PlaceHealth.CheckChange
    }

    struct Story: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let steps: [(at: Int64, step: Step)]

        init(_ what: String, _ steps: (at: Int64, step: Step)...) {
            testDescription = what
            self.steps = steps
        }
    }

    static let cooldown: Int64 = 100
    private static let refused = FailureCause.error(UpstreamError(.connect))

    static let stories = [
        Story(
            "an ejection ends with one probe", (0, .eject()), (1, .isAway(until: 100)), (99, .claim(false)),
            (100, .claim(true)), (101, .claim(false)), (101, .is_(.probing)), (102, .returns(true)),
            (102, .isAway(until: nil))),
        Story("what is ejected is not ejected again", (0, .eject()), (50, .eject()), (50, .isAway(until: 100))),
        Story(
            "each probe that fails doubles the time", (0, .eject()), (100, .claim(true)),
            (110, .probeFails(since: 100)),
            (110, .isAway(until: 310)), (310, .claim(true)), (310, .probeFails(since: 310)),
            (310, .isAway(until: 710))),
        Story(
            "an ejection soon after the return lasts longer", (0, .eject()), (100, .claim(true)), (100, .returns(true)),
            (150, .eject()), (150, .isAway(until: 350))),
        Story(
            "one that was up for as long begins anew", (0, .eject()), (100, .claim(true)), (100, .returns(true)),
            (200, .eject()), (200, .isAway(until: 300))),
        Story(
            "after a long ejection, being up for a cool-down is not enough", (0, .eject()), (100, .claim(true)),
            (100, .probeFails(since: 100)), (300, .claim(true)), (300, .returns(true)), (450, .eject()),
            (450, .isAway(until: 850))),
        Story(
            "the failure of another request than the probe changes nothing", (0, .eject()), (100, .claim(true)),
            (105, .probeFails(since: 99)), (105, .isAway(until: 200))),
        Story(
            "a probe without an end does not keep others from it", (0, .eject()), (100, .claim(true)),
            (199, .claim(false)), (200, .claim(true)), (201, .undecided(since: 100)), (201, .isAway(until: 400))),
        Story(
            "each probe that has no answer for long makes the next one wait twice as long", (0, .eject()),
            (100, .claim(true)), (200, .claim(true)), (399, .claim(false)), (400, .claim(true)),
            (799, .claim(false)), (800, .claim(true)), (900, .probeFails(since: 100)), (900, .is_(.probing)),
            (900, .returns(true)), (900, .isAway(until: nil))),
        Story(
            "a probe without a verdict costs as much again as it took", (0, .eject()), (100, .claim(true)),
            (107, .undecided(since: 100)), (107, .isAway(until: 114)), (114, .claim(true))),
        Story(
            "an unsafe request is no probe but after long, or if nobody would connect", (0, .eject()),
            (100, .claim(false, isSafe: false)), (199, .claim(false, isSafe: false)),
            (200, .claim(true, isSafe: false))),
        Story(
            "an unsafe request may find that nobody connects", (0, .eject(refused)),
            (100, .claim(true, isSafe: false))),
        Story(
            "an early probe that fails changes no time", (0, .eject()), (10, .claimEarly(true)),
            (10, .isAway(until: 110)), (12, .probeFails(since: 10)), (12, .isAway(until: 100)),
            (100, .claim(true)), (101, .probeFails(since: 100)), (101, .isAway(until: 301))),
        Story(
            "an early probe that succeeds brings it back", (0, .eject()), (10, .claimEarly(true)), (11, .returns(true)),
            (11, .isAway(until: nil))),
        Story("one that is up needs no early probe", (0, .claimEarly(false)), (0, .isAway(until: nil))),
        Story(
            "an early probe that hangs is replaced after a while", (0, .eject()), (10, .claimEarly(true)),
            (PlaceHealth.earlyInterval, .claimEarly(false)), (PlaceHealth.earlyInterval + 10, .claimEarly(true))),
        Story(
            "an unsafe request is no early probe of what answered", (0, .eject()),
            (10, .claimEarly(false, isSafe: false))
        ),
        Story("Retry-After makes it longer", (0, .eject(least: 777)), (0, .isAway(until: 777))),
        Story(
            "Retry-After has a bound", (0, .eject(least: .max)), (0, .isAway(until: PlaceHealth.longestEjection))),
        Story("a success of one that is up is no news", (0, .returns(false))),
        // Checks.
        Story(
            "checks that fail make it down, and others in a row bring it back", (0, .checkFails(nil)),
            (1, .checkFails(nil)), (2, .checkFails(.down)), (2, .isAway(until: .max)), (2, .is_(.down)),
            (3, .checkFails(nil)), (4, .checkSucceeds(nil)), (5, .checkFails(nil)), (6, .checkSucceeds(nil)),
            (9, .checkSucceeds(.back(after: 7))), (9, .isAway(until: nil))),
        Story(
            "a check that succeeds in between begins the count anew", (0, .checkFails(nil)), (1, .checkFails(nil)),
            (2, .checkSucceeds(nil)), (3, .checkFails(nil)), (4, .checkFails(nil)), (5, .checkFails(.down))),
        Story(
            "no request is a probe of what is down", (0, .eject()), (0, .checkFails(nil)), (0, .checkFails(nil)),
            (0, .checkFails(.down)), (100, .claim(false)), (100, .claimEarly(false))),
        Story(
            "checks that succeed after it end an ejection", (0, .checkSucceeds(nil)), (0, .checkSucceeds(nil)),
            (0, .eject()), (1, .checkSucceeds(nil)), (2, .checkSucceeds(.back(after: 2))), (2, .isAway(until: nil))),
        Story(
            "they end both at once", (0, .eject()), (1, .checkFails(nil)), (2, .checkFails(nil)),
            (3, .checkFails(.down)), (4, .checkSucceeds(nil)), (5, .checkSucceeds(.back(after: 5)))),
        // The operator.
        Story(
            "what is drained is away without an end, and then as before", (0, .eject()), (1, .drain(true)),
            (1, .is_(.drained)), (100, .claim(false)), (101, .isAway(until: .max)), (102, .drain(false)),
            (102, .claim(true)), (103, .drain(true)), (104, .returns(false)), (105, .drain(false)),
            (105, .isAway(until: nil))),
        Story(
            "checks do not undo a drain", (0, .drain(true)), (0, .checkFails(nil)), (0, .checkFails(nil)),
            (0, .checkFails(.down)), (1, .checkSucceeds(nil)), (1, .checkSucceeds(nil)), (1, .isAway(until: .max))),
    ]

    @Test(arguments: stories)
    func `a place is away as long as this`(story: Story) {
        var health = PlaceHealth()
        var settings = HealthSettings(path: "/")
        (settings.failures, settings.successes) = (3, 2)
        for (now, step) in story.steps {
            switch step {
            case .eject(let cause, let least):
                _ = health.eject(because: cause, least: least, cooldown: Self.cooldown, at: now)
            case .claim(let expected, let isSafe):
                let isChosen = health.claimProbe(isSafe: isSafe, cooldown: Self.cooldown, at: now)
                #expect(isChosen == expected, "at \(now)")
            case .claimEarly(let expected, let isSafe):
                let isChosen = health.claimEarlyProbe(isSafe: isSafe, cooldown: Self.cooldown, at: now)
                #expect(isChosen == expected, "at \(now)")
            case .probeFails(let since):
                health.probeFailed(since: since, because: .status(500), cooldown: Self.cooldown, at: now)
            case .undecided(let since): health.probeUndecided(since: since, cooldown: Self.cooldown, at: now)
            case .returns(let isNews):
                let time = health.returned(at: now)
                #expect((time != nil) == isNews, "at \(now)")
            case .checkFails(let expected):
                let change = health.checked(.failure("500"), settings, at: now)
                #expect(change == expected, "at \(now)")
            case .checkSucceeds(let expected):
                let change = health.checked(.success, settings, at: now)
                #expect(change == expected, "at \(now)")
            case .drain(let isDrained): _ = health.setDrained(isDrained, at: now)
            case .isAway(let until): #expect(health.awayUntil == until ?? PlaceHealth.inUse, "at \(now)")
            case .is_(let condition): #expect(health.condition(isGrowing: false) == condition, "at \(now)")
            }
        }
    }

    @Test func `each early probe that hangs makes the next one wait longer, up to the cool-down`() {
        var health = PlaceHealth()
        let cooldown = 3 * PlaceHealth.earlyInterval
        _ = health.eject(because: .status(503), least: .max, cooldown: cooldown, at: 0)
        // In half intervals.
        let claims = (0..<24).filter { half in
            health.claimEarlyProbe(
                isSafe: true, cooldown: cooldown, at: 1 + Int64(half) * PlaceHealth.earlyInterval / 2)
        }
        #expect(claims == [0, 2, 6, 12, 18])
    }

    @Test func `an ejection never lasts longer than its bound`() {
        var health = PlaceHealth()
        var now: Int64 = 0
        for _ in 0..<200 {
            _ = health.eject(because: .status(503), cooldown: 1_000_000_000, at: now)
            let until = health.awayUntil
            #expect(until - now <= PlaceHealth.longestEjection)
            now = until
            _ = health.claimProbe(isSafe: true, cooldown: 1_000_000_000, at: now)
            health.probeFailed(since: now, because: .status(503), cooldown: 1_000_000_000, at: now)
            now = health.awayUntil
        }
        // A longer cool-down is a bound of its own.
        var other = PlaceHealth()
        let long = 2 * PlaceHealth.longestEjection
        let time = other.eject(because: .status(503), cooldown: long, at: 0)
        #expect(time == long)
    }
}
