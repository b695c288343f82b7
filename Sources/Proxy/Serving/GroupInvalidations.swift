import Bytes
import HTTPSemantics
import Storage

/// When each cache group was last invalidated (RFC 9875 §3). Groups are of one origin, by scheme and authority.
///
/// No index of members is kept: a stored response knows its groups, and is out of date when one of them was invalidated after
/// it was asked for. Bounded: when there is no room for another group, everything in any group that is older counts as invalidated.
final class GroupInvalidations: Sendable {
    static let capacity = 10_000

    private struct State: Sendable {
        /// Monotonic nanoseconds.
        var times: [String: Int64] = [:]
        var everythingBefore = Int64.min
    }

    private let state = Guarded(State())

    func invalidate(_ groups: [String], of authority: String, at now: Int64) {
        state.withLock { state in
            for group in groups {
                if state.times.count >= Self.capacity {
                    state.times.removeAll()
                    state.everythingBefore = now
                }
                state.times[Self.name(authority, group)] = now
            }
        }
    }

    /// Whether a response that was made for `authority` has lost its validity with one of its groups.
    func haveInvalidated(_ response: StoredResponse, of authority: String) -> Bool {
        guard let groups = response.groups else { return false }
        return state.withLock { state in
            state.everythingBefore >= groups.requested
                || groups.names.contains { (state.times[Self.name(authority, $0)] ?? .min) >= groups.requested }
        }
    }

    private static func name(_ authority: String, _ group: String) -> String { "\(authority)\n\(group)" }
}
