public import HTTPSemantics
import Synchronization

/// The tags of one response, and when it was requested, counted in purges (`TagTable`). Immutable, but for the number of
/// purges up to which it was checked. Copies of a response under other facts share it.
public final class ResponseTags: Sendable {
    /// Each once; at least one.
    let tags: [Tag]
    /// How many purges there had been when the origin was asked: only later purges reach the response.
    let requested: UInt64
    /// The number of purges up to which the stored response was checked, so that a hit compares one number; 0: not yet.
    let checked = Atomic<UInt64>(0)

    init(_ tags: [Tag], requested: UInt64) {
        self.tags = tags
        self.requested = requested
    }

    /// The effect that the purges since the request have on the response.
    enum Standing {
        case unchanged
        case changed(ResponseFacts)
        case removed
    }

    func standing(of facts: ResponseFacts) -> Standing {
        var (new, isChanged) = (facts, false)
        for tag in tags where !tag.apply(since: requested, to: &new, isChanged: &isChanged) { return .removed }
        return isChanged ? .changed(new) : .unchanged
    }

    /// Whether a purge has removed the response.
    public var areRemoved: Bool { tags.contains { $0.hasRemoved(since: requested) } }

    /// Whether a response with `facts`, which has just come, is from before a purge or an invalidation: it must not be
    /// stored. One from before a soft purge may be: the store makes it stale.
    public func forbidStoring(_ facts: ResponseFacts) -> Bool {
        switch standing(of: facts) {
        case .unchanged: false
        case .changed(let facts): facts.contains(.isInvalidated)
        case .removed: true
        }
    }

    /// The number of the first purge since the request, or a lower one that is also later than the request; `nil`: there
    /// was none. A request that comes when there have been as many purges gets another response.
    public var firstPurge: UInt64? {
        var first: UInt64?
        for tag in tags {
            if let number = tag.firstPurge(since: requested) { first = min(number, first ?? number) }
        }
        return first
    }

    /// Bytes of memory, without the tags themselves.
    var charge: Int { Charge.tags + tags.count * Charge.tag }
    /// The most bytes that `beginStoring` may return.
    var mostCharge: Int { tags.reduce(0) { $0 + $1.charge } }

    func beginStoring() -> Int { tags.reduce(0) { $0 + $1.beginStoring(since: requested) } }
    func endStoring() -> Int { tags.reduce(0) { $0 + $1.endStoring(since: requested) } }
}
