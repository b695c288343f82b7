import Telemetry

/// Whether one place gets requests, and why not. A value without I/O; times are nanoseconds of the monotonic clock.
///
/// ```
/// up ─eject→ ejected ─its time is over, a request or its copy is chosen→ probing ─success→ up
///                        probing ─failure→ ejected, for twice as long
///                        probing ─no verdict→ ejected for as long again as the probe took
///                        probing ─no answer for long, another request is chosen→ probing, for twice as long
///                        probing ─no end for `failure-cooldown`, another request is chosen→ probing
/// ejected, probing ─no place is left, one request is chosen→ probing (early) ─failure, no verdict→ ejected as before
/// ejected ─another place is back, all were away→ ejected, its time is over
/// ejected, probing ─checks succeed→ up
/// ```
/// Beside that, and whatever the phase: checks that fail make the place *down* until checks succeed, and an operator
/// makes it *drained*.
struct PlaceHealth: Sendable {
    /// The value of `awayUntil` of a place that gets requests.
    static let inUse = Int64.min
    /// The value of `awayUntil` of a place that is down or drained: no request ends that.
    static let withoutEnd = Int64.max
    /// The longest ejection, unless `failure-cooldown` is longer.
    static let longestEjection: Int64 = 300_000_000_000
    /// The interval between early probes of one place while no place is left. A server that is back is found so soon. It
    /// doubles, up to `failure-cooldown`, with each probe that has no answer by then.
    static let earlyInterval: Int64 = 500_000_000

    enum Phase: Sendable, Equatable {
        case up
        case ejected(until: Int64)
        /// The probe began at `since`; another may begin at `until`. `early`: the end of the ejection, if it had not
        /// come when the probe began.
        case probing(since: Int64, until: Int64, early: Int64?)
    }

    private(set) var phase = Phase.up
    private(set) var isDrained: Bool
    private(set) var isDown = false
    /// When the place last began to be away, or was back; `nil`: never.
    private(set) var changedAt: Int64?
    /// The failure that ejected the place, or made it down, the last time.
    private(set) var cause: FailureCause?
    /// The outcome of the last check, and its time.
    private(set) var lastCheck: CheckResult?
    /// The times that the place was ejected without being up for long in between.
    private var ejections = 0
    /// How long the last ejection was to last.
    private var lastEjection: Int64 = 0
    /// Since when the place is up again.
    private var upSince: Int64?
    /// The time from the present early probe to the next one.
    private var earlyWait = PlaceHealth.earlyInterval
    /// Checks in a row with the same outcome, from the last ejection on.
    private var sameChecks = 0

    init(isDrained: Bool = false) { self.isDrained = isDrained }

    /// Until when the place gets no request but a probe.
    var awayUntil: Int64 {
        if isDrained || isDown { return Self.withoutEnd }
        return switch phase {
        case .up: Self.inUse
        case .ejected(let until): until
        case .probing(_, let until, _): until
        }
    }

    // MARK: Answers

    /// Ejects a place that is up.
    /// - Parameters:
    ///   - least: the least length of the ejection (`Retry-After`).
    ///   - cooldown: `failure-cooldown`.
    /// - Returns: for how long; `nil` if it was ejected already.
    mutating func eject(because cause: FailureCause, least: Int64 = 0, cooldown: Int64, at now: Int64) -> Int64? {
        guard phase == .up else { return nil }
        if let upSince, now - upSince >= max(lastEjection, cooldown) { ejections = 0 }
        if !isDown, !isDrained { changedAt = now }
        return enterEjection(because: cause, least: least, cooldown: cooldown, at: now)
    }

    private mutating func enterEjection(because cause: FailureCause, least: Int64, cooldown: Int64, at now: Int64)
        -> Int64
    {
        let length = lengthenEjection(least: least, cooldown: cooldown)
        self.cause = cause
        sameChecks = 0
        phase = .ejected(until: now + length)
        return length
    }

    /// Counts one more ejection.
    /// - Returns: how long it lasts.
    private mutating func lengthenEjection(least: Int64 = 0, cooldown: Int64) -> Int64 {
        let longest = max(Self.longestEjection, cooldown)
        // Beyond 2^16 times, any cool-down of a millisecond or more is at its bound.
        let grown = cooldown.multipliedReportingOverflow(by: 1 << min(ejections, 16))
        lastEjection = min(max(grown.overflow ? longest : grown.partialValue, least), longest)
        ejections += 1
        return lastEjection
    }

    /// The nanoseconds of a `Retry-After`, of which only a day counts.
    static func nanoseconds(ofRetryAfter seconds: Int64) -> Int64 { min(seconds, 86_400) * 1_000_000_000 }

    /// Chooses a request, or a copy of one, as the probe of a place whose ejection is over, unless another one was
    /// chosen.
    /// - Parameters:
    ///   - isSafe: whether the request's method is safe (RFC 9110 §9.2.1). Another request is chosen only if the server
    ///     refused connections, which does no harm and takes no time, or if no safe request came for long.
    ///   - alone: the least time until another probe may begin.
    mutating func claimProbe(isSafe: Bool, alone: Int64 = 0, cooldown: Int64, at now: Int64) -> Bool {
        guard !isDown, !isDrained else { return false }
        switch phase {
        case .up: return false
        case .ejected(let until):
            guard mayProbe(isSafe: isSafe, since: until, cooldown: cooldown, at: now) else { return false }
            phase = .probing(since: now, until: now + max(alone, cooldown), early: nil)
        case .probing(_, let until, _):
            guard mayProbe(isSafe: isSafe, since: until, cooldown: cooldown, at: now) else { return false }
            // The server keeps the former probe waiting: the next one may cost a client as much, so it goes later.
            phase = .probing(since: now, until: now + max(alone, lengthenEjection(cooldown: cooldown)), early: nil)
        }
        return true
    }

    private func mayProbe(isSafe: Bool, since until: Int64, cooldown: Int64, at now: Int64) -> Bool {
        until <= now && (isSafe || cause?.isRefusal == true || now - until >= cooldown)
    }

    /// Chooses a request as the probe of a place whose ejection is not over, since no other place is left.
    mutating func claimEarlyProbe(isSafe: Bool, cooldown: Int64, at now: Int64) -> Bool {
        guard !isDown, !isDrained, isSafe || cause?.isConnection == true else { return false }
        switch phase {
        case .up: return false
        case .ejected(let until):
            earlyWait = Self.earlyInterval
            phase = .probing(since: now, until: now + cooldown, early: until)
        case .probing(let since, let until, let early):
            guard now - since >= earlyWait else { return false }
            earlyWait = min(2 * earlyWait, max(cooldown, Self.earlyInterval))
            phase = .probing(since: now, until: now + cooldown, early: early ?? until)
        }
        return true
    }

    /// The probe that began at `since` failed.
    mutating func probeFailed(
        since: Int64, because cause: FailureCause, least: Int64 = 0, cooldown: Int64, at now: Int64
    ) {
        guard case .probing(since, _, let early) = phase else { return }
        if let early, early > now {
            self.cause = cause
            phase = .ejected(until: early)
        } else {
            _ = enterEjection(because: cause, least: least, cooldown: cooldown, at: now)
        }
    }

    /// The probe that began at `since` ended with neither a response nor a failure, as when its client leaves. A short
    /// probe costs little, and a server that hangs does not get an unbroken row of clients.
    mutating func probeUndecided(since: Int64, cooldown: Int64, at now: Int64) {
        guard case .probing(since, _, let early) = phase else { return }
        phase = .ejected(until: early ?? min(since + cooldown, now + (now - since)))
    }

    /// A probe brought a response that is no failure.
    /// - Returns: for how long the place was away, if it gets requests from now on and did not before.
    mutating func returned(at now: Int64) -> Int64? {
        guard phase != .up else { return nil }
        phase = .up
        upSince = now
        return isAvailable ? changed(at: now) : nil
    }

    /// The place may be probed at once: another place of the origin, which was away as well, is back.
    mutating func endEjection(at now: Int64) {
        if case .ejected(let until) = phase, until > now { phase = .ejected(until: now) }
    }

    private var isAvailable: Bool { awayUntil == Self.inUse }

    private mutating func changed(at now: Int64) -> Int64 {
        defer { changedAt = now }
        return max(0, now - (changedAt ?? now))
    }

    // MARK: Checks and the operator

    enum CheckChange: Equatable {
        case down
        /// The place gets requests again. It was away for so long.
        case back(after: Int64)
    }

    mutating func checked(_ outcome: CheckOutcome, _ settings: HealthSettings, at now: Int64) -> CheckChange? {
        let isSame = lastCheck.map { $0.outcome.isSuccess == outcome.isSuccess } ?? true
        lastCheck = CheckResult(outcome: outcome, at: now)
        sameChecks = isSame ? sameChecks + 1 : 1
        let wasAvailable = isAvailable
        switch outcome {
        case .failure(let why):
            guard !isDown, sameChecks >= settings.failures else { return nil }
            isDown = true
            cause = .check(why)
            if wasAvailable { changedAt = now }
            return .down
        case .success:
            guard isDown || phase != .up, sameChecks >= settings.successes else { return nil }
            isDown = false
            if phase != .up {
                phase = .up
                upSince = now
            }
            return isAvailable ? .back(after: changed(at: now)) : nil
        }
    }

    /// Called when no check follows: none could end a state that the last ones began.
    mutating func forgetChecks(at now: Int64) {
        (lastCheck, sameChecks) = (nil, 0)
        guard isDown else { return }
        isDown = false
        if isAvailable { _ = changed(at: now) }
    }

    /// - Returns: whether that changes anything.
    mutating func setDrained(_ isDrained: Bool, at now: Int64) -> Bool {
        guard isDrained != self.isDrained else { return false }
        self.isDrained = isDrained
        changedAt = now
        return true
    }

    /// Whether requests could be answered, as far as is known, if answers alone decided.
    var mayAnswer: Bool { !isDrained && !isDown && (phase == .up || cause?.isConnection != true) }

    /// The word for operators.
    /// - Parameter isGrowing: whether the share of a place that is back still grows (`slow-start`).
    func condition(isGrowing: Bool) -> PlaceState.Condition {
        if isDrained { return .drained }
        if isDown { return .down }
        return switch phase {
        case .up: isGrowing ? .slowStart : .up
        case .ejected: .ejected
        case .probing: .probing
        }
    }
}

/// The outcome of an active check of a place.
package enum CheckOutcome: Sendable, Equatable {
    case success
    /// With a word or two for operators, like `500`, or `connect`.
    case failure(String)

    /// Whether the place is in health.
    package var isSuccess: Bool { self == .success }
}

/// The last check of a place.
package struct CheckResult: Sendable, Equatable {
    /// The outcome.
    package let outcome: CheckOutcome
    /// In nanoseconds of the monotonic clock.
    package let at: Int64

    package init(outcome: CheckOutcome, at: Int64) {
        self.outcome = outcome
        self.at = at
    }
}

/// Why a place is away.
package enum FailureCause: Sendable, CustomStringConvertible {
    case error(UpstreamError)
    /// A response with a status of `retry.on`.
    case status(UInt16)
    /// Active checks, the last with this outcome.
    case check(String)

    /// `503`, `connect`, `head-timeout`, `check: 500`.
    package var description: String {
        switch self {
        case .error(let error): "\(error.word)"
        case .status(let status): "\(status)"
        case .check(let why): "check: \(why)"
        }
    }

    /// For the log.
    package var detail: String {
        switch self {
        case .error(let error): "\(error)"
        case .status(let status): "answered \(status)"
        case .check(let why): "checks fail, the last one with \(why)"
        }
    }

    /// Whether no connection could be made, so that the request did not reach the server.
    package var isConnection: Bool { if case .error(let error) = self { error.isBeforeRequest } else { false } }
    /// Whether the server refused connections: a request learns that at once.
    var isRefusal: Bool { if case .error(let error) = self { error.failure == .connect } else { false } }
}
