import Bytes
import HTTPSemantics

/// A tag, or a cache group of one origin, with the numbers of its purges (`TagTable`). One object for all responses that
/// have it.
final class Tag: Sendable {
    /// The effect of a purge on the responses that have the tag.
    enum Effect: Sendable {
        case remove
        case soften(Softening)
        /// By their origin: validated before the next use (RFC 9875 §3).
        case invalidate
    }

    private struct State {
        /// The numbers of the last purges with each effect; 0: none.
        var removed: UInt64
        var softened: UInt64 = 0
        var softening = Softening(at: .min, grace: 0)
        var invalidated: UInt64 = 0
        /// The numbers of the last purge of any kind, and of the one before it: they show whether the last one is the
        /// only one since a response was requested.
        var last: UInt64
        var former: UInt64
        /// How many responses are stored that have the tag.
        var stored = 0
        /// How many of them were removed by a purge, and wait to be dropped.
        var doomed = 0
    }

    let hash: UInt64
    let name: ByteSlice
    private let state: Guarded<State>

    /// - Parameter removed: the number of the last purge that this tag may have had before it was forgotten.
    init(_ name: ByteSlice, hash: UInt64, removed: UInt64 = 0) {
        self.name = name
        self.hash = hash
        state = Guarded(State(removed: removed, last: removed, former: removed))
    }

    // MARK: - Purges

    /// Notes a purge.
    /// - Parameter number: greater than that of any response that is stored (`ResponseTags.requested`).
    /// - Returns: how many stored responses it reaches that no purge has removed.
    func note(_ effect: Effect, number: UInt64) -> Int {
        state.withLock { state in
            (state.former, state.last) = (state.last, number)
            let reached = state.stored - state.doomed
            switch effect {
            case .remove: (state.removed, state.doomed) = (number, state.stored)
            case .soften(let softening): (state.softened, state.softening) = (number, softening)
            case .invalidate: state.invalidated = number
            }
            return reached
        }
    }

    /// The number of the last purge; 0: none.
    var lastPurge: UInt64 { state.withLock { $0.last } }

    /// The number of the first purge after `requested`, or a lower one that is also after `requested`.
    func firstPurge(since requested: UInt64) -> UInt64? {
        state.withLock { state in
            guard state.last > requested else { return nil }
            return state.former <= requested ? state.last : requested + 1
        }
    }

    /// Whether a response that was requested at `requested` was removed.
    func hasRemoved(since requested: UInt64) -> Bool { state.withLock { $0.removed > requested } }

    /// Changes the facts of a response that was requested at `requested`, if they are not changed yet.
    /// - Parameter isChanged: set if they were.
    /// - Returns: false if the response was removed.
    func apply(since requested: UInt64, to facts: inout ResponseFacts, isChanged: inout Bool) -> Bool {
        let (isRemoved, softening, isInvalidated) = state.withLock { state in
            (
                state.removed > requested, state.softened > requested ? state.softening : nil,
                state.invalidated > requested
            )
        }
        if isRemoved { return false }
        if let softening, facts.soften(by: softening) { isChanged = true }
        if isInvalidated, !facts.contains(.isInvalidated) {
            facts.invalidate()
            isChanged = true
        }
        return true
    }

    // MARK: - Stored responses

    /// A response that was requested at `requested` is stored once more.
    /// - Returns: bytes to charge: those of the tag, for the first response.
    func beginStoring(since requested: UInt64) -> Int {
        state.withLock { state in
            state.stored += 1
            if state.removed > requested { state.doomed += 1 }
            return state.stored == 1 ? charge : 0
        }
    }

    /// - Returns: bytes that are no longer charged.
    func endStoring(since requested: UInt64) -> Int {
        state.withLock { state in
            state.stored -= 1
            if state.removed > requested { state.doomed -= 1 }
            return state.stored == 0 ? charge : 0
        }
    }

    /// Bytes of the tag itself and of its place in the table.
    var charge: Int { Charge.distinctTag + name.count }
}
