import Glibc

/// Everything the thread of a crowd works on.
struct CrowdState {
    /// waiting ─→ connecting ─connected→ asking ─request written→ reading ─answer ended→ resting (kept open) or gone
    enum Phase {
        case waiting
        case connecting
        case asking
        case reading
        case resting
        case gone
    }

    struct Member {
        let visitor: Visitor
        var reader: AnswerReader
        var phase = Phase.waiting
        var descriptor: Int32 = -1
        var slot = 0
        var sent = 0
        var resumesAt: Instant?
    }

    let endpoint: Endpoint
    var table = PollTable()
    var members: [Member]
    private(set) var asked = 0
    private(set) var pending: Int
    private(set) var isClosed = false
    private var owner: [Int: Int] = [:]
    private var nextToConnect = 0
    private var connecting = 0
    private var paused: Set<Int> = []

    /// Fewer than any listen queue holds: a dropped SYN would cost a second.
    private static let connectsAtOnce = 100

    init(endpoint: Endpoint, visitors: [Visitor]) {
        self.endpoint = endpoint
        members = visitors.map { visitor in
            Member(visitor: visitor, reader: AnswerReader(to: visitor.method, pattern: visitor.pattern, askedAt: .now))
        }
        pending = visitors.count
    }

    var nextDeadline: Instant? { paused.compactMap { members[$0].resumesAt }.min() }

    mutating func connectMore() {
        while connecting < Self.connectsAtOnce, nextToConnect < members.count {
            let index = nextToConnect
            nextToConnect += 1
            guard members[index].phase == .waiting else { continue }
            var buffer: Int32?
            if case .eager = members[index].visitor.pace {} else { buffer = 4096 }
            guard let descriptor = try? Socket.connect(to: endpoint, receiveBuffer: buffer) else {
                end(index, .refused)
                continue
            }
            members[index].descriptor = descriptor
            members[index].slot = table.add(descriptor, .writing)
            members[index].phase = .connecting
            owner[members[index].slot] = index
            connecting += 1
        }
    }

    mutating func work(_ slots: [Int], _ scratch: inout [UInt8]) {
        let now = Instant.now
        for slot in slots {
            guard let index = owner[slot] else { continue }
            switch members[index].phase {
            case .connecting: connected(index)
            case .asking: ask(index)
            case .reading: read(index, &scratch, now)
            case .resting: dropIfEnded(index, &scratch)
            case .waiting, .gone: break
            }
        }
        for index in paused where members[index].resumesAt.map({ $0 <= now }) ?? false {
            paused.remove(index)
            table.set(members[index].slot, members[index].descriptor, .reading)
        }
    }

    private mutating func connected(_ index: Int) {
        connecting -= 1
        if Socket.failure(of: members[index].descriptor) != nil { return end(index, .refused) }
        begin(index)
    }

    private mutating func begin(_ index: Int) {
        let visitor = members[index].visitor
        members[index].reader = AnswerReader(to: visitor.method, pattern: visitor.pattern, askedAt: .now)
        members[index].sent = 0
        members[index].phase = .asking
        ask(index)
    }

    private mutating func ask(_ index: Int) {
        let request = members[index].visitor.request
        switch Socket.write(members[index].descriptor, request, from: members[index].sent) {
        case .bytes(let count): members[index].sent += count
        case .notNow: break
        case .ended, .cut, .failed: return end(index, .reset)
        }
        guard members[index].sent == request.count else {
            return table.set(members[index].slot, members[index].descriptor, .writing)
        }
        asked += 1
        members[index].phase = .reading
        if case .stuck = members[index].visitor.pace {
            table.set(members[index].slot, members[index].descriptor, [])
        } else {
            table.set(members[index].slot, members[index].descriptor, .reading)
        }
    }

    private mutating func read(_ index: Int, _ scratch: inout [UInt8], _ now: Instant) {
        var limit = Int.max
        if case .slow(let bytes, _) = members[index].visitor.pace { limit = bytes }
        let outcome = Socket.read(members[index].descriptor, into: &scratch, atMost: limit)
        switch outcome {
        case .bytes(let count):
            members[index].reader.read(scratch[..<count], at: now)
            if members[index].reader.answer.ending != .pending { return end(index, .clean) }
            pause(index, now)
        case .notNow: break
        case .ended, .cut, .failed:
            members[index].reader.finish(by: outcome, at: now)
            end(index, .cutOff)
        }
    }

    private mutating func pause(_ index: Int, _ now: Instant) {
        guard case .slow(_, let rest) = members[index].visitor.pace else { return }
        members[index].resumesAt = now + rest
        paused.insert(index)
        table.set(members[index].slot, members[index].descriptor, [])
    }

    private mutating func dropIfEnded(_ index: Int, _ scratch: inout [UInt8]) {
        switch Socket.read(members[index].descriptor, into: &scratch) {
        case .bytes, .notNow: break
        case .ended, .cut, .failed: drop(index)
        }
    }

    /// The answer of this member is over, one way or another.
    private mutating func end(_ index: Int, _ ending: Answer.Ending) {
        members[index].reader.finish(ending, at: .now)
        pending -= 1
        if ending == .clean, members[index].visitor.keepsOpen {
            members[index].phase = .resting
        } else {
            drop(index)
        }
    }

    private mutating func drop(_ index: Int, reset: Bool = false) {
        let member = members[index]
        members[index].phase = .gone
        paused.remove(index)
        guard member.descriptor >= 0 else { return }
        owner[member.slot] = nil
        table.remove(member.slot)
        if reset { Socket.reset(member.descriptor) } else { Socket.close(member.descriptor) }
        members[index].descriptor = -1
    }

    // MARK: - What the test asks for

    mutating func leave(_ index: Int) {
        guard members[index].phase != .gone else { return }
        if members[index].reader.answer.ending == .pending { pending -= 1 }
        members[index].reader.finish(.left, at: .now)
        drop(index, reset: true)
    }

    mutating func again() {
        asked = 0
        for index in members.indices where members[index].phase == .resting {
            pending += 1
            begin(index)
        }
    }

    mutating func closeAll() {
        isClosed = true
        for index in members.indices { drop(index) }
    }
}
