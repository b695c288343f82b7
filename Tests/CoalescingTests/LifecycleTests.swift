import Testing

@testable import Coalescing

/// The pure machine: every way from making an operation to its end.
struct LifecycleTests {
    private func made(_ steps: (inout Lifecycle) -> Void) -> Lifecycle {
        var lifecycle = Lifecycle()
        steps(&lifecycle)
        return lifecycle
    }

    @Test func `an operation begins once`() {
        var life = made { _ = $0.submit() }
        let first = life.begin()
        let second = life.begin()
        #expect(first)
        #expect(!second)
    }

    @Test func `an operation is not ready before its dependencies are met`() {
        var life = made {
            _ = $0.expectDependency(); _ = $0.expectDependency()
        }
        let submission = life.submit()
        #expect(!submission && life.visiblePhase == .pending)
        let afterOne = life.dependencyMet()
        #expect(!afterOne)
        #expect(life.visiblePhase == .pending)
        let afterBoth = life.dependencyMet()
        #expect(afterBoth)
        #expect(life.visiblePhase == .ready)
    }

    @Test func `dependencies may be met before submission`() {
        var life = made {
            _ = $0.expectDependency(); _ = $0.dependencyMet()
        }
        let submission = life.submit()
        #expect(submission)
    }

    @Test func `a submitted operation takes no dependency`() {
        var life = made { _ = $0.submit() }
        let isExpected = life.expectDependency()
        #expect(!isExpected)
    }

    /// Where it stands, who ends it, and what that asks for.
    @Test(arguments: [
        ("pending", Lifecycle.Initiator.outside, Lifecycle.Ending.retire),
        ("ready", .outside, .retire),
        ("ready", .work, .retire),
        ("starting", .work, .leaveToStarter),
        ("starting", .outside, .leaveToStarter),
        ("executing", .work, .retire),
        ("executing", .outside, .stopWorkAndRetire),
        ("coalesced", .outside, .leaveSourceAndRetire),
        ("coalesced", .work, .leaveSourceAndRetire),
    ])
    func `an operation ends once, whatever its phase`(
        phase: String, initiator: Lifecycle.Initiator, expected: Lifecycle.Ending
    ) {
        var life = Lifecycle()
        if phase == "coalesced" { _ = life.coalesce() } else if phase != "pending" { _ = life.submit() }
        if phase == "starting" || phase == "executing" { _ = life.begin() }
        if phase == "executing" { _ = life.entered() }
        let first = life.end(.cancelled, by: initiator)
        #expect(first == expected)
        #expect(life.visiblePhase == .cancelled)
        let second = life.end(nil, by: .work)
        #expect(second == .ignored)
        let third = life.end(.cancelled, by: .outside)
        #expect(third == .ignored)
        let begins = life.begin()
        #expect(!begins)
    }

    @Test func `work cancelled while beginning is stopped afterwards`() {
        var life = made {
            _ = $0.submit(); _ = $0.begin(); _ = $0.end(.cancelled, by: .outside)
        }
        let (first, second) = (life.entered(), life.entered())
        #expect(first == .stopWorkAndRetire)
        #expect(second == .none)
    }

    @Test func `work finished while beginning is not stopped`() {
        var life = made {
            _ = $0.submit(); _ = $0.begin(); _ = $0.end(nil, by: .work)
        }
        let entered = life.entered()
        #expect(entered == .retire)
    }

    @Test func `the outcome is final only after retirement`() {
        var life = made {
            _ = $0.submit(); _ = $0.begin(); _ = $0.entered(); _ = $0.end(nil, by: .work)
        }
        #expect(life.outcome != nil)
        #expect(life.finalOutcome == nil)
        life.retire()
        #expect(life.finalOutcome != nil)
        #expect(life.visiblePhase == .finished)
    }

    @Test func `a coalesced operation cannot be submitted until the other refuses it`() {
        var life = made { _ = $0.coalesce() }
        let whileCoalesced = life.submit()
        #expect(!whileCoalesced)
        life.uncoalesce()
        let afterwards = life.submit()
        #expect(afterwards)
    }
}
