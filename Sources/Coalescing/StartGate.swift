/// Decides which operation may start, and when: a limit on the running operations, priorities among the waiting ones,
/// and a bound on their number. Pure: `OperationGate` holds the lock and begins the operation that `next()` returns.
///
/// **Order.** The highest priority first; within one priority, first come, first served. Every `agingInterval`-th grant
/// goes instead to the operation that has waited longest, of any priority, so the lowest priority gets at least that
/// share of the slots and never starves. Members of immediate priority run beside the slots.
struct StartGate<Member: GateMember>: Sendable {
    /// ```
    /// (admit) ─enter→ pending ─submit→ waiting ─next→ running ─makeRoom→ leaving ─leave→ (gone)
    ///                    │               │  │            └──────────leave────────────────┘
    ///                    │               │  └─next, if immediate→ beside ─leave, makeRoom┤
    ///                    └───────────────┴──────────leave, makeRoom──────────────────────┘
    /// ```
    private enum Phase: Sendable {
        /// Waits for its dependencies.
        case pending
        case waiting(OperationPriority, SlotToken)
        case running
        /// Runs without a slot.
        case beside
        /// Has ended, and holds its slot until its waiters and observers have been told.
        case leaving
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

    /// The number of running members.
    private(set) var running = 0
    /// The number of running members that are leaving.
    private var leaving = 0
    /// The number of members that do not run yet: pending or waiting.
    private(set) var queued = 0
    /// The number of members for which `admit` has reserved room, and that have not entered yet.
    private var expected = 0

    private let agingInterval: Int
    private var records = GroupedList<Record>()
    /// Further groups of members (see `addMembership`).
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

    /// The members that entered with this group or were added to it later; a member may occur twice.
    func members(inGroup group: Int) -> [Member] {
        records.elements(inGroup: group).map(\.member) + memberships.elements(inGroup: group)
    }

    /// Makes room for one more member. False if all slots are taken and the maximum number of members waits, unless the
    /// member needs no slot.
    mutating func admit(_ priority: OperationPriority = .normal) -> Bool {
        let room = isPaused ? 0 : max(0, maxConcurrent - running + leaving)
        let ahead = queued + expected
        guard ahead < room || ahead - room < maxQueued || priority == .immediate else { return false }
        expected += 1
        return true
    }

    /// Gives back the room that `admit` reserved, if it did: without a maximum, members enter unasked.
    mutating func withdraw() {
        if expected > 0 { expected -= 1 }
    }

    /// Enters a member, which needs the room that `admit` reserved no more.
    /// - Parameter group: the group by which the member is found.
    mutating func enter(_ member: Member, group: Int? = nil) {
        withdraw()
        queued += 1
        member.keep(record: records.append(Record(member: member, phase: .pending), group: group))
    }

    /// Enters a member that is ready to run.
    ///
    /// - Returns: whether it runs, since a slot is free and no member waits, or since it needs no slot. Otherwise it
    ///   waits like the others: call `next()`.
    mutating func enterReady(_ member: Member, group: Int?, priority: OperationPriority) -> Bool {
        let isImmediate = priority == .immediate
        guard !isPaused, isImmediate || (running < maxConcurrent && highestLane == nil) else {
            enter(member, group: group)
            submit(member, priority: priority)
            return false
        }
        withdraw()
        if isImmediate {
            member.keep(record: records.append(Record(member: member, phase: .beside), group: group))
            return true
        }
        member.keep(record: records.append(Record(member: member, phase: .running), group: group))
        grants += 1
        running += 1
        return true
    }

    /// The member is ready to run. Ignored if it has left meanwhile.
    mutating func submit(_ member: Member, priority: OperationPriority) {
        let record = member.record
        guard case .pending = records[record]?.phase else { return }
        arrivals += 1
        let token = lanes[Int(priority.rawValue)].append(Arrival(member: member, number: arrivals))
        records.update(record) { $0.phase = .waiting(priority, token) }
    }

    /// Moves the member to the end of a higher lane. Ignored unless the member waits in a lower one.
    mutating func raise(_ member: Member, to priority: OperationPriority) {
        let record = member.record
        guard case .waiting(let current, let token) = records[record]?.phase, current < priority,
            let arrival = lanes[Int(current.rawValue)].remove(token)
        else { return }
        let moved = lanes[Int(priority.rawValue)].append(arrival)
        records.update(record) { $0.phase = .waiting(priority, moved) }
    }

    /// The next member to begin. It holds a slot from now on until `leave`, unless it needs none. `nil` if no member
    /// waits or no slot is free.
    mutating func next() -> Member? {
        guard queued > 0, !isPaused else { return nil }
        if let member = nextImmediate() { return member }
        guard running < maxConcurrent else { return nil }
        let longestFirst = (grants + 1) % agingInterval == 0
        guard let lane = longestFirst ? oldestLane : highestLane, let front = lanes[lane].front else { return nil }
        _ = lanes[lane].remove(front.token)
        grants += 1
        running += 1
        queued -= 1
        records.update(front.element.member.record) { $0.phase = .running }
        return front.element.member
    }

    private mutating func nextImmediate() -> Member? {
        let lane = Int(OperationPriority.immediate.rawValue)
        guard let front = lanes[lane].front else { return nil }
        _ = lanes[lane].remove(front.token)
        queued -= 1
        records.update(front.element.member.record) { $0.phase = .beside }
        return front.element.member
    }

    private var highestLane: Int? { lanes.indices.last { !lanes[$0].isEmpty } }

    private var oldestLane: Int? {
        lanes.indices.filter { !lanes[$0].isEmpty }.min { a, b in
            (lanes[a].front?.element.number ?? .max) < (lanes[b].front?.element.number ?? .max)
        }
    }

    /// Adds a member to a further group, until `endMembership`.
    /// - Returns: `nil` if the member entered with this group, or has left.
    mutating func addMembership(of member: Member, in group: Int) -> SlotToken? {
        guard records[member.record] != nil, records.group(of: member.record) != group else { return nil }
        return memberships.append(member, group: group)
    }

    mutating func endMembership(_ token: SlotToken) { _ = memberships.remove(token) }

    /// The member has ended: the room that it takes is free for others, its slot not yet. Without a slot it leaves.
    mutating func makeRoom(for member: Member) {
        switch records[member.record]?.phase {
        case .pending, .waiting, .beside:
            leave(member)
        case .running:
            records.update(member.record) { $0.phase = .leaving }
            leaving += 1
        case .leaving, nil:
            break
        }
    }

    /// The member has ended, in any phase.
    mutating func leave(_ member: Member) {
        switch records.remove(member.record)?.phase {
        case .pending:
            queued -= 1
        case .waiting(let priority, let token):
            queued -= 1
            _ = lanes[Int(priority.rawValue)].remove(token)
        case .running:
            running -= 1
        case .leaving:
            running -= 1
            leaving -= 1
        case .beside, nil:
            break
        }
    }
}

/// A member that waits at a gate, or has passed it. It keeps the token of its record, so that the gate need not search.
protocol GateMember: AnyObject, Sendable {
    /// Both are for the gate, which calls them under its lock. `record` is the last token given to `keep`, or `.none`.
    var record: SlotToken { get }
    func keep(record: SlotToken)
}
