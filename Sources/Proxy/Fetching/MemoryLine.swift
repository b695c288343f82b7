import Bytes
import Synchronization

/// The order in which fetches get memory once there is too little: bodies that have begun before heads, and each of
/// them first come, first served. Their clients have a head already, and are cut off if the rest does not come; who has
/// no head yet can be told 503.
///
/// Without it, whoever asks just as memory is given back would get it: a newcomer, more often than one of hundreds who
/// look again every `Worker.memoryRetryInterval`.
///
/// ```
/// has memory ─none, or others stand in line→ stands in line ─among the first, and there is some→ has memory
///                                                 └─looks again, as one of the first (`turn`); none→ back to the front
/// ```
///
/// Shared by all loops. A mutex guards the line; who has no place asks an atomic first, which says 'nobody' nearly always.
final class MemoryLine: Sendable {
    /// What is to be put into memory.
    enum Need { case body, head }

    /// A place in the line, which its owner gives up by letting go of it.
    final class Place: Sendable {
        private let line: MemoryLine
        fileprivate let need: Need

        fileprivate init(in line: MemoryLine, _ need: Need) {
            self.line = line
            self.need = need
        }

        deinit { line.leave(ObjectIdentifier(self), need) }
    }

    private struct State {
        var bodies: [ObjectIdentifier] = []
        var heads: [ObjectIdentifier] = []
    }

    /// How many may look for memory at the same time: enough that what is given back is soon used, though each looks
    /// only now and then, and that one which looks no more keeps nobody waiting.
    static let front = 16

    private let state = Guarded(State())
    private let length = Atomic<Int>(0)

    /// Whether anybody stands in line. Any thread.
    var isEmpty: Bool { length.load(ordering: .relaxed) == 0 }

    /// - Parameter isFirst: it had its turn, and found nothing: before all others.
    func enter(_ need: Need, isFirst: Bool) -> Place {
        let place = Place(in: self, need)
        let identifier = ObjectIdentifier(place)
        state.withLock { state in
            switch need {
            case .body: state.bodies.insert(identifier, at: isFirst ? 0 : state.bodies.count)
            case .head: state.heads.insert(identifier, at: isFirst ? 0 : state.heads.count)
            }
        }
        length.add(1, ordering: .relaxed)
        return place
    }

    private func leave(_ identifier: ObjectIdentifier, _ need: Need) {
        state.withLock { state in
            switch need {
            case .body: state.bodies.removeAll { $0 == identifier }
            case .head: state.heads.removeAll { $0 == identifier }
            }
        }
        length.subtract(1, ordering: .relaxed)
    }

    /// Whether who stands at `place`, or nowhere, may take memory before those in line. Any thread.
    func letsThrough(_ place: Place?) -> Bool {
        if isEmpty { return true }
        guard let place else { return false }
        let identifier = ObjectIdentifier(place)
        return state.withLock { state in
            switch place.need {
            case .body: state.bodies.prefix(Self.front).contains(identifier)
            case .head: state.bodies.isEmpty && state.heads.prefix(Self.front).contains(identifier)
            }
        }
    }
}
