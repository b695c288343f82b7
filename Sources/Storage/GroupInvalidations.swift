import Bytes
public import HTTPSemantics

/// The time at which each cache group was last invalidated (RFC 9875 §3). A group belongs to one origin, by scheme and
/// authority.
///
/// There is no index of a group's members. A stored response has the names of its groups, and is invalid if one of them
/// was invalidated after the response was requested. Bounded: when there is no room for another group, every older
/// response with a group counts as invalidated.
public final class GroupInvalidations: Sendable {
    static let capacity = 10_000

    /// Monotonic nanoseconds. `former`, the invalidation before `last`, shows whether `last` is the only one since a
    /// response was requested.
    private struct Times: Sendable {
        let last: Int64
        let former: Int64
    }

    private struct State: Sendable {
        var times: [String: Times] = [:]
        var everythingBefore = Int64.min
    }

    private let state = Guarded(State())

    /// No group is invalidated yet.
    public init() {}

    /// Invalidates the groups of `authority`.
    /// - Parameter now: monotonic nanoseconds.
    public func invalidate(_ groups: [String], of authority: String, at now: Int64) {
        state.withLock { state in
            for group in groups {
                if state.times.count >= Self.capacity {
                    state.times.removeAll()
                    state.everythingBefore = now
                }
                let name = Self.name(authority, group)
                let former = state.times[name]?.last ?? .min
                state.times[name] = Times(last: max(now, former), former: former)
            }
        }
    }

    /// Whether a response from `authority` is invalid because one of its groups was invalidated.
    public func haveInvalidated(_ response: StoredResponse, of authority: String) -> Bool {
        response.groups.map { whenInvalidated($0, of: authority) != nil } ?? false
    }

    /// When a response in these groups became invalid, in monotonic nanoseconds; `nil` if it is valid. If there were
    /// several invalidations since it was requested, or an unknown number, the time of its request.
    public func whenInvalidated(_ groups: CacheGroups, of authority: String) -> Int64? {
        state.withLock { state in
            if state.everythingBefore >= groups.requestTime { return groups.requestTime }
            return groups.names.compactMap { group in
                guard let times = state.times[Self.name(authority, group)], times.last >= groups.requestTime else {
                    return nil
                }
                return times.former < groups.requestTime ? times.last : groups.requestTime
            }.min()
        }
    }

    private static func name(_ authority: String, _ group: String) -> String { "\(authority)\n\(group)" }
}
