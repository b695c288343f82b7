import Testing

@testable import Telemetry

@Suite struct RateLimitedNoticeTests {
    enum Kind { case malformed, refused }

    @Test func `each interval has a limited number of notices, and the next gives the number suppressed`() {
        var notices = RateLimitedNotice<Kind>(limit: 2, interval: 100)
        let decisions = [0, 1, 2, 99, 100, 101, 102, 250].map { notices.admit(.malformed, at: 1000 + $0) }
        #expect(
            decisions == [
                .write(suppressed: 0), .write(suppressed: 0), .suppress, .suppress,
                .write(suppressed: 2), .write(suppressed: 0), .suppress,
                .write(suppressed: 1),
            ])
    }

    @Test func `one kind of notice does not use up the limit of another`() {
        var notices = RateLimitedNotice<Kind>(limit: 1, interval: 100)
        let decisions = [Kind.malformed, .refused, .malformed, .refused].map { notices.admit($0, at: 0) }
        #expect(decisions == [.write(suppressed: 0), .write(suppressed: 0), .suppress, .suppress])
    }

    @Test func `suppressed notices are reported even if no more come, and only once`() {
        var notices = RateLimitedNotice<Kind>(limit: 1, interval: 100)
        for _ in 0..<5 { _ = notices.admit(.malformed, at: 0) }
        let early = notices.takeSuppressed(at: 99)
        #expect(early.isEmpty)
        let due = notices.takeSuppressed(at: 100)
        #expect(due.map(\.count) == [4] && due.map(\.kind) == [.malformed])
        let again = notices.takeSuppressed(at: 300)
        #expect(again.isEmpty)
        let next = notices.admit(.malformed, at: 301)
        #expect(next == .write(suppressed: 0))
    }

    @Test func `a clock that steps back neither traps nor lifts the limit`() {
        var notices = RateLimitedNotice<Kind>(limit: 1, interval: 100)
        let first = notices.admit(.malformed, at: 1000)
        let second = notices.admit(.malformed, at: 10)
        #expect(first == .write(suppressed: 0))
        #expect(second == .suppress)
    }
}
