import Glibc

/// The sockets of one thread, one slot each. Slot 0 is a pipe by which other threads interrupt the waiting.
struct PollTable: Sendable {
    struct Interest: OptionSet {
        let rawValue: Int16
        static let reading = Interest(rawValue: Int16(POLLIN))
        static let writing = Interest(rawValue: Int16(POLLOUT))
    }

    private(set) var entries: [pollfd]
    private var free: [Int] = []
    let waker: Waker

    init() {
        waker = Waker()
        entries = [pollfd(fd: waker.reading, events: Int16(POLLIN), revents: 0)]
    }

    mutating func add(_ descriptor: Int32, _ interest: Interest) -> Int {
        let entry = pollfd(fd: descriptor, events: interest.rawValue, revents: 0)
        if let slot = free.popLast() {
            entries[slot] = entry
            return slot
        }
        entries.append(entry)
        return entries.count - 1
    }

    /// No interest at all also hides hang-ups, so that a paused socket does not spin.
    mutating func set(_ slot: Int, _ descriptor: Int32, _ interest: Interest) {
        entries[slot].fd = interest.isEmpty ? -1 : descriptor
        entries[slot].events = interest.rawValue
    }

    mutating func remove(_ slot: Int) {
        entries[slot] = pollfd(fd: -1, events: 0, revents: 0)
        free.append(slot)
    }

    /// Waits on a copy of the table, so that nobody is locked out meanwhile; returns the slots with something to do.
    static func wait(on entries: [pollfd], until deadline: Instant?) -> [Int] {
        var entries = entries
        Socket.poll(&entries, within: deadline.map { max($0 - .now, .zero) })
        var slots: [Int] = []
        for index in entries.indices where entries[index].revents != 0 { slots.append(index) }
        if slots.first == 0 {
            Waker.drain(entries[0].fd)
            slots.removeFirst()
        }
        return slots
    }
}

/// Interrupts a thread that waits in `poll`. The pipe closes with the last holder.
final class Waker: Sendable {
    let reading: Int32
    private let writing: Int32

    init() { (reading, writing) = Socket.makePipe() }

    deinit {
        Socket.close(reading)
        Socket.close(writing)
    }

    func wake() { Socket.poke(writing) }

    static func drain(_ reading: Int32) {
        var buffer = [UInt8](repeating: 0, count: 256)
        while case .bytes = Socket.read(reading, into: &buffer) {}
    }
}
