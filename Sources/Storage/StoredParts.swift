public import Bytes
public import HTTPSemantics

/// The available bytes of an incomplete representation (RFC 9111 §3.3): all parts that arrived under one strong entity
/// tag, or one part without such a tag. Immutable; may go to any thread.
///
/// They belong to a `StoredResponse` with status 200, no `Content-Range` and an empty body, one for each variant, which
/// stands in `CachedResource.partials` and never among the whole variants: a plain hit neither sees parts nor pays for
/// them. It is one entry of the eviction queues. A fetch of a part has a key that contains the range: requests for equal
/// ranges share a fetch, and different ranges are fetched at the same time.
///
/// ```
/// (none) ─206→ parts ─206, same strong tag→ more parts ─no gap left→ whole: an ordinary variant
///    │          │ ▲ └─304, HEAD→ freshened
///    └─200 cut  │ │
///     off, ─────┘ ├─another tag, or no strong one→ that part instead
///     strong tag  └─200, purge, unsafe request, eviction→ none
/// ```
///
/// Joined bodies share their memory (`GrowingBody.init(joining:budget:)`). Beyond `mostRuns`, or beyond
/// `StorageSettings.objectLimit` bytes, the smallest runs are dropped, but never the one just fetched.
///
/// ```
/// 0        run        gap       run    run (arriving)   length
/// ├─────────▉▉▉▉▉▉▉──────────────▉▉▉▉▉▉░░░░░░░░░──────────┤
/// ```
public final class StoredParts: Sendable {
    /// A run of bytes without a gap.
    public struct Run: Sendable {
        /// The range of the run's bytes in the representation.
        public let range: Range<Int>
        /// The bytes of the run and no others. While the body still arrives, `range` is the announced range.
        public let body: GrowingBody

        public init(_ range: Range<Int>, _ body: GrowingBody) {
            self.range = range
            self.body = body
        }

        /// The range, in `body`, of the bytes that are `part` of the representation.
        public func bodyRange(of part: Range<Int>) -> Range<Int> {
            part.lowerBound - range.lowerBound..<part.upperBound - range.lowerBound
        }
    }

    /// The most runs kept of one representation: enough for a player that seeks, few enough to go through one by one.
    public static let mostRuns = 32

    /// The runs, in order; no two overlap. Stored runs do not touch either.
    public let runs: [Run]
    /// The length of the whole representation, in bytes; `nil` while it is unknown.
    public let length: Int?

    /// - Parameters:
    ///   - runs: in order; no two overlap.
    ///   - length: the length of the whole representation in bytes, if known.
    public init(_ runs: [Run], length: Int?) {
        self.runs = runs
        self.length = length
    }

    /// The ranges of the available bytes.
    public var content: PartialContent { PartialContent(runs.map(\.range), of: length) }
    /// Whether the runs make up the whole representation.
    public var isComplete: Bool { content.isComplete }
    /// Bytes of memory held by the bodies.
    public var retained: Int { GrowingBody.retained(by: runs.map(\.body)) }

    /// The number of bodies that the runs consist of.
    var lenderCount: Int { runs.reduce(0) { $0 + 1 + $1.body.lenderCount } }

    /// The most bytes of overhead that joining these parts with stored parts may add: each run may cut a stored run in
    /// two, and a small whole representation is packed with its body.
    var mostJoinedCharge: Int {
        let mayBePacked = length ?? runs.last?.range.upperBound ?? 0 <= StoredResponse.packedBody
        let packed = mayBePacked ? StoredResponse.packedBody : 0
        return 2 * runs.count * Charge.lender + packed
    }

    /// These parts with another run, which replaces the stored bytes of the same range.
    /// - Parameter length: the length of the whole representation, if the new run's message told it.
    public func adding(_ new: Run, length: Int?, budget: MemoryBudget) -> StoredParts {
        var runs: [Run] = []
        var isIn = false
        for run in self.runs {
            if !isIn, run.range.lowerBound >= new.range.lowerBound {
                runs.append(new)
                isIn = true
            }
            let (before, behind) = (
                run.range.part(before: new.range.lowerBound), run.range.part(from: new.range.upperBound)
            )
            if let before { runs.append(run.cut(to: before, budget)) }
            if let behind {
                if !isIn {
                    runs.append(new)
                    isIn = true
                }
                runs.append(run.cut(to: behind, budget))
            }
        }
        if !isIn { runs.append(new) }
        return StoredParts(runs, length: length ?? self.length)
    }

    /// These parts with runs that touch joined to one, and within the bounds: the smallest runs are dropped first, but
    /// never `kept`. All bodies must have ended.
    func joined(keeping kept: Range<Int>, limit: Int, budget: MemoryBudget) -> StoredParts {
        var groups: [[Run]] = []
        for run in runs {
            if let last = groups.last?.last, last.range.upperBound == run.range.lowerBound {
                groups[groups.count - 1].append(run)
            } else {
                groups.append([run])
            }
        }
        var joined = groups.map { Self.joined($0, budget) }
        while joined.count > Self.mostRuns || (joined.count > 1 && joined.reduce(0, { $0 + $1.range.count }) > limit) {
            let candidates = joined.indices.filter { !joined[$0].range.overlaps(kept) }
            guard let smallest = candidates.min(by: { joined[$0].range.count < joined[$1].range.count }) else { break }
            joined.remove(at: smallest)
        }
        // If a client reads the representation from end to end in small ranges, the one run would grow past all bounds:
        // keep only the new run.
        if joined.count == 1, joined[0].range.count > limit, let new = runs.first(where: { $0.range == kept }) {
            joined = [new]
        }
        return StoredParts(joined, length: length)
    }

    private static func joined(_ group: [Run], _ budget: MemoryBudget) -> Run {
        guard group.count > 1 else { return group[0] }
        let range = group[0].range.lowerBound..<group[group.count - 1].range.upperBound
        return Run(range, GrowingBody(joining: group.map { ($0.body, 0..<$0.range.count) }, budget: budget))
    }
}

extension StoredParts.Run {
    /// The part of the run with the bytes `part` of the representation. The body must have ended.
    fileprivate func cut(to part: Range<Int>, _ budget: MemoryBudget) -> Self {
        if part == range { return self }
        return Self(part, GrowingBody(joining: [(body, bodyRange(of: part))], budget: budget))
    }
}

extension Range<Int> {
    /// The part of the range before `end`; `nil` if it is empty.
    fileprivate func part(before end: Int) -> Self? {
        lowerBound < end ? lowerBound..<Swift.min(upperBound, end) : nil
    }

    /// The part of the range from `start` on; `nil` if it is empty.
    fileprivate func part(from start: Int) -> Self? {
        upperBound > start ? Swift.max(lowerBound, start)..<upperBound : nil
    }
}
