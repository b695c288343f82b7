import Glibc
import Synchronization

/// A relay in front of an engine, at a Unix socket of its own, which does harm to what goes through it. One thread does
/// the work; the state is under one lock.
final class EngineRelay: Sendable {
    /// A connection of a machine and the one to the engine that belongs to it: index 0 and 1 of each pair.
    private struct Link {
        let ends: [Int32]
        let slots: [Int]
        /// What goes to each end, and when.
        var queued: [[(due: Instant, bytes: [UInt8])]] = [[], []]
        /// Which end takes nothing at present.
        var isBlocked = [false, false]

        /// When there is something to send.
        var due: Instant? { (0..<2).compactMap { isBlocked[$0] ? nil : queued[$0].first?.due }.min() }
    }

    private struct State {
        var table = PollTable()
        var listener: Int32
        var listenerSlot: Int
        var links: [Int: Link] = [:]
        var made = 0
        var delay = Duration.zero
        var isStalled = false
        var isClosed = false
        var refuses = false
        /// What a machine gets for all that it sends.
        var answer: [UInt8]?
    }

    private let state: Mutex<State>
    private let waker: Waker
    private let path: String
    private let target: Endpoint
    /// As the configuration of the program has it.
    var url: String { "unix:\(path)" }

    init(to engine: RedisEngine, number: Int) throws {
        path = "\(engine.folder)/relay\(number).sock"
        target = .unix(engine.path)
        let listener = try Socket.listen(at: path)
        var table = PollTable()
        let slot = table.add(listener, .reading)
        waker = table.waker
        state = Mutex(State(table: table, listener: listener, listenerSlot: slot))
        System.startThread { [self] in run() }
    }

    // MARK: What the test says

    /// From now on everything takes so long, each way.
    func delay(by time: Duration) { change { $0.delay = time } }

    /// From now on nothing comes through, or everything again.
    func stall(_ isStalled: Bool = true) { change { $0.isStalled = isStalled } }

    /// Ends the connections that there are.
    func cut() { change { Self.cut(&$0) } }

    /// Ends the connections that there are, and from now on each new one at once; or takes them again.
    func refuse(_ refuses: Bool = true) {
        change {
            $0.refuses = refuses
            if refuses { Self.cut(&$0) }
        }
    }

    /// From now on this relay answers each command with these bytes, itself; `nil`: the engine answers again.
    func answer(with bytes: String?) { change { $0.answer = bytes.map { Array($0.utf8) } } }

    /// How many connections were made so far.
    var connections: Int { state.withLock { $0.made } }

    func stop() {
        change {
            $0.isClosed = true
            Self.cut(&$0)
        }
    }

    private func change(_ body: (inout State) -> Void) {
        state.withLock { body(&$0) }
        waker.wake()
    }

    // MARK: The work

    private func run() {
        var scratch = [UInt8](repeating: 0, count: 1 << 18)
        while true {
            let (entries, deadline, isClosed) = state.withLock { ($0.table.entries, Self.deadline($0), $0.isClosed) }
            if isClosed { break }
            let slots = PollTable.wait(on: entries, until: deadline)
            state.withLock { work($0.isClosed ? [] : slots, &$0, &scratch) }
        }
        state.withLock { Socket.close($0.listener) }
    }

    private static func deadline(_ state: State) -> Instant? {
        guard !state.isStalled else { return nil }
        return state.links.values.compactMap(\.due).min()
    }

    private func work(_ slots: [Int], _ state: inout State, _ scratch: inout [UInt8]) {
        for slot in slots {
            if slot == state.listenerSlot {
                accept(&state)
            } else if let key = state.links.first(where: { $0.value.slots.contains(slot) })?.key {
                receive(key, &state, &scratch)
            }
        }
        guard !state.isStalled else { return }
        for key in Array(state.links.keys) { send(key, &state) }
    }

    private func accept(_ state: inout State) {
        while let machine = Socket.accept(state.listener) {
            guard !state.refuses, let engine = try? Socket.connect(to: target) else {
                Socket.close(machine)
                continue
            }
            let ends = [machine, engine]
            state.links[state.made] = Link(ends: ends, slots: ends.map { state.table.add($0, .reading) })
            state.made += 1
        }
    }

    private func receive(_ key: Int, _ state: inout State, _ scratch: inout [UInt8]) {
        for side in 0..<2 {
            reading: while let link = state.links[key] {
                switch Socket.read(link.ends[side], into: &scratch) {
                case .bytes(let count):
                    let due = Instant.now + state.delay
                    if side == 0, let answer = state.answer {
                        let answers = [[UInt8]](repeating: answer, count: Self.commands(in: scratch[..<count]))
                        state.links[key]?.queued[0].append((due, Array(answers.joined())))
                    } else {
                        state.links[key]?.queued[1 - side].append((due, Array(scratch[..<count])))
                    }
                case .notNow: break reading
                case .ended, .cut, .failed: Self.close(key, &state)
                }
            }
        }
    }

    /// How many commands begin in bytes that begin with one: each is an array of bulk strings. A command without an answer
    /// of its own would get that of the next one.
    private static func commands(in bytes: ArraySlice<UInt8>) -> Int {
        var (count, rest) = (0, bytes)
        func takeNumber(behind sign: Character) -> Int? {
            guard rest.first == sign.asciiValue, let end = rest.firstIndex(of: UInt8(ascii: "\n")) else { return nil }
            defer { rest = rest[(end + 1)...] }
            return Int(String(decoding: rest[..<end].dropFirst().dropLast(), as: UTF8.self))
        }
        while let parts = takeNumber(behind: "*") {
            count += 1
            for _ in 0..<parts {
                guard let size = takeNumber(behind: "$") else { return count }
                rest = rest.dropFirst(size + 2)
            }
        }
        return max(count, 1)
    }

    private func send(_ key: Int, _ state: inout State) {
        for side in 0..<2 {
            var isBlocked = false
            while let link = state.links[key], let next = link.queued[side].first, next.due <= .now, !isBlocked {
                switch Socket.write(link.ends[side], next.bytes, from: 0) {
                case .bytes(next.bytes.count): state.links[key]?.queued[side].removeFirst()
                case .bytes(let count): state.links[key]?.queued[side][0].bytes.removeFirst(count)
                case .notNow: isBlocked = true
                case .ended, .cut, .failed: Self.close(key, &state)
                }
            }
            guard let link = state.links[key] else { return }
            state.links[key]?.isBlocked[side] = isBlocked
            state.table.set(link.slots[side], link.ends[side], isBlocked ? [.reading, .writing] : .reading)
        }
    }

    private static func cut(_ state: inout State) { for key in Array(state.links.keys) { close(key, &state) } }

    private static func close(_ key: Int, _ state: inout State) {
        guard let link = state.links.removeValue(forKey: key) else { return }
        for (end, slot) in zip(link.ends, link.slots) {
            Socket.close(end)
            state.table.remove(slot)
        }
    }
}
