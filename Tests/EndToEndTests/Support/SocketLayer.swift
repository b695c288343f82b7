import Glibc
import Synchronization

/// What a descriptor of the tests speaks above its plain bytes. Its calls come under `Socket`'s, from any thread.
protocol SocketLayer: Sendable {
    /// Sends what a client sends first, as soon as the connection is there.
    func begin()
    func read(into buffer: inout [UInt8], atMost limit: Int) -> Socket.Outcome
    /// Takes bytes once the kernel has taken all that was made of them: until then the caller offers them again.
    func write(_ bytes: ArraySlice<UInt8>) -> Socket.Outcome
    /// No more bytes follow from this side; the connection may stay.
    func finishSending()
    /// The descriptor is about to be closed.
    func sayEnd()
    /// What to ask the kernel for, instead of `events`; and whether bytes, or an end, wait here.
    func interest(for events: Int16) -> (events: Int16, isReady: Bool)
}

/// The descriptors of this process that have a layer, the topmost one of each.
enum SocketLayers {
    private static let all = Mutex<[Int32: any SocketLayer]>([:])
    /// Tests without layers take no lock for it.
    private static let count = Atomic(0)

    static var isEmpty: Bool { count.load(ordering: .relaxed) == 0 }

    static func add(_ layer: any SocketLayer, to descriptor: Int32) {
        all.withLock { all in
            all[descriptor] = layer
            count.store(all.count, ordering: .relaxed)
        }
    }

    static subscript(descriptor: Int32) -> (any SocketLayer)? {
        isEmpty ? nil : all.withLock { $0[descriptor] }
    }

    static subscript(descriptors: [Int32]) -> [(any SocketLayer)?] {
        all.withLock { all in descriptors.map { all[$0] } }
    }

    /// Before the descriptor is closed.
    static func remove(_ descriptor: Int32) -> (any SocketLayer)? {
        guard !isEmpty else { return nil }
        return all.withLock { all in
            defer { count.store(all.count, ordering: .relaxed) }
            return all.removeValue(forKey: descriptor)
        }
    }
}
