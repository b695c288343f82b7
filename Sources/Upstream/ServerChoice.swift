import Libevent

/// Chooses the place of a request, for one loop: a copy of the list, and the turns. Time and randomness are arguments;
/// the places themselves are shared.
///
/// A place is *usable* if it is in use and was not asked by the same request in vain. Backups are asked only while no
/// other place is usable.
///
/// A place whose ejection is over is probed by
///
/// | while another place is usable | while none is |
/// | --- | --- |
/// | a copy of a request (`Probe`): no client waits for it | the request |
/// | a request that may not be copied, as an unsafe one, if no copy came for long | the same |
struct ServerChoice {
    /// The request that is to be sent.
    struct Asked {
        /// Whether its method is safe (RFC 9110 §9.2.1).
        var isSafe = true
        /// Whether it, or its copy, may find out whether a place is back.
        var mayProbe = true
        /// Whether a copy of it may (`UpstreamRequest.mayBeCopied`).
        var mayBeCopied = true
        /// The hash of its key; used under `Balance.hash` only.
        var key: UInt64 = 0
        /// The numbers (`Place.number`) of the places that it asked in vain.
        var tried: [Int] = []
    }

    enum Pick: Equatable {
        /// The index into `entries`. `probe`: when the request was chosen as the place's probe; `nil`: it was not.
        case place(Int, probe: Int64?)
        /// No place is left. The first of them may be back at `next`; `nil`: that is not known.
        case none(next: Int64?)
    }

    private(set) var entries: [ServerGroup.Entry]
    /// The generation of the list.
    private(set) var generation: UInt64
    private let group: ServerGroup
    private let balance: Balance
    private let slowStart: Int64
    /// The credit of each place, in the order of `entries` (smooth weighted round-robin, as in nginx).
    private var owed: [Int]
    /// The indices of the places to choose from: usable ones, or ejected ones for an early probe. Kept for its memory.
    private var usable: [Int] = []

    /// - Parameter first: how many turns are over. If all loops began with the same server, it would get the first
    ///   requests of all of them.
    init(_ group: ServerGroup, startingAt first: Int = 0) {
        self.group = group
        generation = group.generation
        entries = group.entries
        balance = group.settings.balance
        slowStart = group.settings.slowStart.nanoseconds
        owed = entries.map { _ in 0 }
        guard entries.count > 1, balance == .roundRobin else { return }
        for _ in 0..<first % entries.count { _ = nextInTurn(of: Array(entries.indices), at: 0) }
    }

    /// Takes the present list of the group, if it changed. Places that stay keep their turns.
    /// - Returns: whether it changed.
    mutating func update() -> Bool {
        let present = group.generation
        guard present != generation else { return false }
        generation = present
        let former = Dictionary(zip(entries.map(\.place.number), owed)) { first, _ in first }
        entries = group.entries
        owed = entries.map { former[$0.place.number] ?? 0 }
        return true
    }

    /// Whether there is only one place: it gets all requests, however often it fails.
    var isLone: Bool { entries.count == 1 }

    /// The place to ask.
    mutating func pick(
        _ asked: borrowing Asked, at now: Int64, random: inout some RandomNumberGenerator
    ) -> Pick {
        if entries.count == 1 {
            return entries[0].place.awayUntil == PlaceHealth.withoutEnd ? .none(next: nil) : .place(0, probe: nil)
        }
        return pickOfSeveral(asked, at: now, random: &random)
    }

    @inline(never)
    private mutating func pickOfSeveral(
        _ asked: borrowing Asked, at now: Int64, random: inout some RandomNumberGenerator
    ) -> Pick {
        for isBackup in [false, true] {
            if asked.mayProbe, !asked.mayBeCopied, let index = probe(isBackup: isBackup, asked, isSafe: false, at: now)
            {
                return .place(index, probe: now)
            }
            findUsable(isBackup: isBackup, asked)
            if let index = choose(asked.key, at: now, random: &random) { return .place(index, probe: nil) }
        }
        guard asked.mayProbe else { return .none(next: nil) }
        for isBackup in [false, true] {
            if let index = probe(isBackup: isBackup, asked, isSafe: asked.isSafe, at: now) {
                return .place(index, probe: now)
            }
        }
        return earlyProbe(asked, at: now)
    }

    /// A place whose ejection is over, if a copy of the request is chosen as its probe. The request itself goes to the
    /// place at `index`: backups are probed beside backups only.
    func placeToProbe(besides index: Int, _ asked: borrowing Asked, at now: Int64) -> Int? {
        // The only place gets the request itself.
        guard entries.count > 1, asked.mayProbe, asked.mayBeCopied else { return nil }
        if let other = probe(isBackup: false, asked, isSafe: true, isCopy: true, at: now) { return other }
        return entries[index].isBackup ? probe(isBackup: true, asked, isSafe: true, isCopy: true, at: now) : nil
    }

    /// Whether a place is usable for another request than its first.
    func hasUsable(besides tried: [Int]) -> Bool {
        entries.contains { $0.place.isInUse && !tried.contains($0.place.number) }
    }

    private mutating func findUsable(isBackup: Bool, _ asked: borrowing Asked) {
        usable.removeAll(keepingCapacity: true)
        for index in entries.indices
        where entries[index].isBackup == isBackup && entries[index].place.isInUse
            && !asked.tried.contains(entries[index].place.number)
        {
            usable.append(index)
        }
    }

    /// A place whose ejection is over, if the request, or its copy, is chosen as its probe.
    private func probe(
        isBackup: Bool, _ asked: borrowing Asked, isSafe: Bool, isCopy: Bool = false, at now: Int64
    ) -> Int? {
        for index in entries.indices where entries[index].isBackup == isBackup {
            let place = entries[index].place
            let until = place.awayUntil
            guard until != PlaceHealth.inUse, until <= now, !asked.tried.contains(place.number) else { continue }
            if group.claimProbe(place, isSafe: isSafe, isCopy: isCopy, at: now) { return index }
        }
        return nil
    }

    /// The ejected place whose turn it is, if the request is chosen as its probe before its time.
    private mutating func earlyProbe(_ asked: borrowing Asked, at now: Int64) -> Pick {
        usable.removeAll(keepingCapacity: true)
        var next = Int64.max
        for index in entries.indices {
            let until = entries[index].place.awayUntil
            guard until != PlaceHealth.withoutEnd, until != PlaceHealth.inUse else { continue }
            next = min(next, until)
            if !asked.tried.contains(entries[index].place.number) { usable.append(index) }
        }
        if !usable.isEmpty {
            let index = usable[group.earlyProbes % usable.count]
            let (place, count) = (entries[index].place, usable.count)
            if group.claimEarlyProbe(place, of: count, isSafe: asked.isSafe, at: now) {
                return .place(index, probe: now)
            }
        }
        return .none(next: next == .max ? nil : next)
    }

    // MARK: Which of the usable places

    private mutating func choose(_ key: UInt64, at now: Int64, random: inout some RandomNumberGenerator) -> Int? {
        guard usable.count > 1 else { return usable.first }
        switch balance {
        case .roundRobin: return nextInTurn(of: usable, at: now)
        case .leastRequests: return lighter(at: now, random: &random)
        case .hash: return owner(of: key, at: now)
        }
    }

    /// A hundred times the weight of a place; less while its share still grows: from a tenth, linearly.
    private func weight(of index: Int, at now: Int64) -> Int {
        let whole = entries[index].weight * 100
        guard slowStart > 0 else { return whole }
        let back = entries[index].place.backAt
        guard back != .min, now - back < slowStart else { return whole }
        let share = max(0.1, Double(max(0, now - back)) / Double(slowStart))
        return max(1, Int(Double(whole) * share))
    }

    private mutating func nextInTurn(of indices: [Int], at now: Int64) -> Int {
        var (total, best) = (0, indices[0])
        for index in indices {
            let weight = weight(of: index, at: now)
            owed[index] += weight
            total += weight
            if owed[index] > owed[best] { best = index }
        }
        owed[best] -= total
        return best
    }

    /// The better one of two places drawn at random (Mitzenmacher, 'The power of two choices', 2001): the one with fewer
    /// requests in flight for its weight; of two that are equal, either one, in proportion to their weights. If one
    /// takes more than twice as long as the other for a response, the one with the shorter wait to expect.
    private func lighter(at now: Int64, random: inout some RandomNumberGenerator) -> Int {
        let first = Int.random(in: 0..<usable.count, using: &random)
        let second = (first + Int.random(in: 1..<usable.count, using: &random)) % usable.count
        let (a, b) = (usable[first], usable[second])
        let weights = (Double(weight(of: a, at: now)), Double(weight(of: b, at: now)))
        let inFlight = (Double(entries[a].place.requestsInFlight), Double(entries[b].place.requestsInFlight))
        if let left = entries[a].place.latency(at: now), let right = entries[b].place.latency(at: now),
            left / 2 > right || right / 2 > left
        {
            let waits = ((inFlight.0 + 1) * Double(left) / weights.0, (inFlight.1 + 1) * Double(right) / weights.1)
            return waits.1 < waits.0 ? b : a
        }
        let (left, right) = (inFlight.0 * weights.1, inFlight.1 * weights.0)
        if left != right { return right < left ? b : a }
        return Double.random(in: 0..<weights.0 + weights.1, using: &random) < weights.0 ? a : b
    }

    private func owner(of key: UInt64, at now: Int64) -> Int {
        var (best, highest) = (usable[0], -1.0)
        for index in usable {
            let score = Rendezvous.score(key, entries[index].hash, weight: Double(weight(of: index, at: now)))
            if score > highest { (best, highest) = (index, score) }
        }
        return best
    }
}

/// SplitMix64, for choices that need not be secret. The system's generator makes a system call.
struct LoopRandom: RandomNumberGenerator {
    private var state = UInt64.random(in: 0...UInt64.max)

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        return Rendezvous.mixed(state)
    }
}
