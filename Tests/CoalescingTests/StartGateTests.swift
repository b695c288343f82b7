import Synchronization
import Testing

@testable import Coalescing

/// A limit, priorities, and nobody who waits for ever.
struct StartGateTests {
    private final class Member: GateMember {
        let name: Int
        private let kept = Mutex(SlotToken.none)

        init(_ name: Int) { self.name = name }

        var record: SlotToken { kept.withLock { $0 } }
        func keep(record: SlotToken) { kept.withLock { $0 = record } }
    }

    private func gate(_ maxConcurrent: Int, maxQueued: Int = .max, aging: Int = .max) -> StartGate<Member> {
        StartGate(maxConcurrent: maxConcurrent, maxQueued: maxQueued, agingInterval: aging)
    }

    private func put(_ members: [(Int, OperationPriority)], into gate: inout StartGate<Member>) -> [Member] {
        members.map { name, priority in
            let member = Member(name)
            _ = gate.admit()
            gate.enter(member)
            gate.submit(member, priority: priority)
            return member
        }
    }

    /// Lets one run after the other and writes down the order.
    private func drain(_ gate: inout StartGate<Member>) -> [Int] {
        var order: [Int] = []
        while let member = gate.next() {
            order.append(member.name)
            gate.leave(member)
        }
        return order
    }

    @Test func `the gate runs no more members than its limit`() {
        var gate = gate(2)
        let members = put([(1, .normal), (2, .normal), (3, .normal)], into: &gate)
        let started = [gate.next()?.name, gate.next()?.name, gate.next()?.name]
        #expect(started == [1, 2, nil])
        gate.leave(members[0])
        let next = gate.next()?.name
        #expect(next == 3)
        #expect(gate.running == 2)
        #expect(gate.queued == 0)
    }

    @Test func `a ready member runs at once if a slot is free and none waits for one`() {
        var gate = gate(1)
        let (dependent, first, second) = (Member(1), Member(2), Member(3))
        gate.enter(dependent)
        let runs = gate.enterReady(first, group: nil, priority: .low)
        #expect(runs)
        let runsToo = gate.enterReady(second, group: nil, priority: .low)
        #expect(!runsToo)
        gate.submit(dependent, priority: .normal)
        gate.leave(first)
        #expect(drain(&gate) == [1, 3])
        #expect(gate.running == 0 && gate.queued == 0)
    }

    @Test func `urgent members start first, equal ones in order of arrival`() {
        var gate = gate(1)
        _ = put([(1, .low), (2, .high), (3, .background), (4, .normal), (5, .high), (6, .low)], into: &gate)
        let order = drain(&gate)
        #expect(order == [2, 5, 4, 1, 6, 3])
    }

    @Test func `after every few starts, the member that has waited longest is next`() {
        var gate = gate(1, aging: 3)
        _ = put([(0, .background)] + (1...5).map { ($0, .high) }, into: &gate)
        let order = drain(&gate)
        #expect(order == [1, 2, 0, 3, 4, 5])
    }

    @Test func `a stream of urgent members does not starve the others`() {
        var gate = gate(1, aging: 8)
        _ = put([(0, .background)], into: &gate)
        var grants = 0
        while grants < 100 {
            grants += 1
            _ = put([(grants, .high)], into: &gate)
            guard let member = gate.next() else { break }
            gate.leave(member)
            if member.name == 0 { break }
        }
        #expect(grants <= 8)
    }

    @Test func `the queue takes no more members than its limit`() {
        var gate = gate(1, maxQueued: 2)
        let admitted = (0..<4).map { _ in gate.admit() }
        #expect(admitted == [true, true, true, false])
        gate.withdraw()
        let afterwards = gate.admit()
        #expect(afterwards)
    }

    @Test func `a paused gate starts no member, and free slots admit none beyond the queue`() {
        var gate = gate(4, maxQueued: 1)
        gate.isPaused = true
        _ = put([(1, .normal)], into: &gate)
        let next = gate.next()?.name
        let admitted = gate.admit()
        #expect(next == nil)
        #expect(!admitted)
    }

    @Test func `a member that leaves the queue is not started`() {
        var gate = gate(1)
        let members = put([(1, .normal), (2, .normal), (3, .normal)], into: &gate)
        gate.leave(members[1])
        #expect(gate.queued == 2)
        let order = drain(&gate)
        #expect(order == [1, 3])
    }

    @Test func `an immediate member takes no slot, and waits for none and for nobody`() {
        var gate = gate(1, maxQueued: 1)
        let members = put([(1, .normal), (2, .high)], into: &gate)
        let first = gate.next()?.name
        #expect(first == 2)
        let admitted = [gate.admit(), gate.admit(.immediate)]
        #expect(admitted == [false, true])
        let immediate = Member(3)
        let runs = gate.enterReady(immediate, group: nil, priority: .immediate)
        #expect(runs && gate.running == 1 && gate.queued == 1)
        #expect(gate.members.count == 3)
        gate.leave(immediate)
        gate.leave(immediate)
        #expect(gate.running == 1 && gate.members.count == 2)
        gate.raise(members[0], to: .immediate)
        let raised = gate.next()?.name
        #expect(raised == 1 && gate.running == 1 && gate.queued == 0)
    }

    @Test func `a paused gate holds back immediate members as well`() {
        var gate = gate(1)
        gate.isPaused = true
        let (normal, immediate) = (Member(1), Member(2))
        let runs = [
            gate.enterReady(normal, group: nil, priority: .high),
            gate.enterReady(immediate, group: nil, priority: .immediate),
        ]
        #expect(runs == [false, false])
        gate.isPaused = false
        let order = [gate.next()?.name, gate.next()?.name]
        #expect(order == [2, 1])
        gate.makeRoom(for: immediate)
        #expect(gate.running == 1 && gate.members.count == 1)
    }

    @Test func `a member whose priority is raised moves forward`() {
        var gate = gate(1)
        let members = put([(1, .low), (2, .low), (3, .normal)], into: &gate)
        gate.raise(members[1], to: .high)
        gate.raise(members[2], to: .background)
        let order = drain(&gate)
        #expect(order == [2, 3, 1])
    }
}
