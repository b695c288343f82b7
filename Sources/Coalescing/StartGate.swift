/// Who may start, and when: a limit on how many run, priorities among those who wait, and a bound on how many may wait.
/// Pure; `OperationQueueManager` locks it and begins what `next()` returns.
///
/// **Order.** The highest priority first, within it first come, first served. Every `agingInterval`-th grant goes
/// instead to the one that has waited longest, whatever its priority, so the lowest gets at least that share of the
/// slots and never starves.
struct StartGate<Member: GateMember>: Sendable {
    /// ```
    /// (admit) ─enter→ pending ─submit→ waiting ─next→ running ─leave→ (gone)
    ///                    └───────────────┴──────────leave─────────────┘
    /// ```
    private enum Phase: Sendable {
        /// Waits for its dependencies.
        case pending
        case waiting(OperationPriority, SlotToken)
        case running
    }

    private struct Record: Sendable {
        let member: Member
        var phase: Phase
    }

    private struct Arrival: Sendable {
        let member: Member
        let number: UInt64
    }

    var maxConcurrent: Int
    var maxQueued: Int
    var isPaused = false

    /// How many run.
    private(set) var running = 0
    /// How many were admitted and do not run yet: about to enter, pending or waiting.
    private(set) var queued = 0

    private let agingInterval: Int
    private var records = GroupedList<Record>()
    /// Further groups that members are in.
    private var memberships = GroupedList<Member>()
    private var lanes: [SlotList<Arrival>]
    private var arrivals: UInt64 = 0
    private var grants = 0

    init(maxConcurrent: Int, maxQueued: Int, agingInterval: Int) {
        self.maxConcurrent = maxConcurrent
        self.maxQueued = maxQueued
        self.agingInterval = max(1, agingInterval)
        lanes = Array(repeating: SlotList(), count: OperationPriority.allCases.count)
    }

    var members: [Member] { records.elements.map(\.member) }

    /// The members that entered with this group or were added to it later; some perhaps twice.
    func members(inGroup group: Int) -> [Member] {
        records.elements(inGroup: group).map(\.member) + memberships.elements(inGroup: group)
    }

    /// Makes room for one more. False if all slots are taken and as many wait as may.
    mutating func admit() -> Bool {
        let room = isPaused ? 0 : max(0, maxConcurrent - running)
        guard queued < room || queued - room < maxQueued else { return false }
        queued += 1
        return true
    }

    /// Gives back what `admit` reserved.
    mutating func withdraw() {
        queued -= 1
    }

    /// The one that was admitted.
    /// - Parameter group: what the member is found by.
    mutating func enter(_ member: Member, group: Int? = nil) {
        member.keep(record: records.append(Record(member: member, phase: .pending), group: group))
    }

    /// The one that was admitted, which could run now.
    ///
    /// - Returns: whether it runs, since a slot is free and nobody waits. Otherwise it waits like the others: look for
    ///   `next()`.
    mutating func enterReady(_ member: Member, priority: OperationPriority) -> Bool {
        guard !isPaused, running < maxConcurrent, queued == 1 else {
            enter(member)
            submit(member, priority: priority)
            return false
        }
        member.keep(record: records.append(Record(member: member, phase: .running), group: nil))
        grants += 1
        running += 1
        queued -= 1
        return true
    }

    /// The member could run now. Ignored if it has left meanwhile.
    mutating func submit(_ member: Member, priority: OperationPriority) {
        let record = member.record
        guard case .pending = records[record]?.phase else { return }
        arrivals += 1
        let token = lanes[Int(priority.rawValue)].append(Arrival(member: member, number: arrivals))
        records.update(record) { $0.phase = .waiting(priority, token) }
    }

    /// Moves it to the end of a higher lane. Ignored unless it waits in a lower one.
    mutating func raise(_ member: Member, to priority: OperationPriority) {
        let record = member.record
        guard case .waiting(let current, let token) = records[record]?.phase, current < priority,
            let arrival = lanes[Int(current.rawValue)].remove(token)
        else { return }
        let moved = lanes[Int(priority.rawValue)].append(arrival)
        records.update(record) { $0.phase = .waiting(priority, moved) }
    }

    /// The next to begin; it holds a slot from now on until `leave`. `nil` if nobody waits or no slot is free.
    mutating func next() -> Member? {
        guard queued > 0, !isPaused, running < maxConcurrent else { return nil }
        let longestFirst = (grants + 1) % agingInterval == 0
        guard let lane = longestFirst ? oldestLane : highestLane, let front = lanes[lane].front else { return nil }
        _ = lanes[lane].remove(front.token)
        grants += 1
        running += 1
        queued -= 1
        records.update(front.element.member.record) { $0.phase = .running }
        return front.element.member
    }

    private var highestLane: Int? { lanes.indices.last { !lanes[$0].isEmpty } }

    private var oldestLane: Int? {
        lanes.indices.filter { !lanes[$0].isEmpty }.min { a, b in
            (lanes[a].front?.element.number ?? .max) < (lanes[b].front?.element.number ?? .max)
        }
    }

    /// Adds a member to another group too, until `endMembership`.
    /// - Returns: `nil` if it entered with that one, or has left.
    mutating func addMembership(of member: Member, in group: Int) -> SlotToken? {
        guard records[member.record] != nil, records.group(of: member.record) != group else { return nil }
        return memberships.append(member, group: group)
    }

    mutating func endMembership(_ token: SlotToken) { _ = memberships.remove(token) }

    /// The member has ended, wherever it stood.
    mutating func leave(_ member: Member) {
        switch records.remove(member.record)?.phase {
        case .pending:
            queued -= 1
        case .waiting(let priority, let token):
            queued -= 1
            _ = lanes[Int(priority.rawValue)].remove(token)
        case .running:
            running -= 1
        case nil:
            break
        }
    }
}

/// Waits at a gate, or has passed it. It remembers where its record is, so that the gate need not search for it.
protocol GateMember: AnyObject, Sendable {
    /// For the gate, which calls both under its lock: what `keep` was given last, `.none` before.
    var record: SlotToken { get }
    func keep(record: SlotToken)
}
