public import Bytes
public import HTTPSemantics

/// The bytes that are there of a representation that is not there whole (RFC 9111 §3.3): what arrived under one strong
/// entity tag, or one part without such a tag. Immutable; may go to any thread.
///
/// ```
/// 0        run        gap       run    run (arriving)   length
/// ├─────────▉▉▉▉▉▉▉──────────────▉▉▉▉▉▉░░░░░░░░░──────────┤
/// ```
public final class StoredParts: Sendable {
    /// Bytes without a gap.
    public struct Run: Sendable {
        /// Where in the representation its bytes stand.
        public let range: Range<Int>
        /// The bytes of the run and no more. While it arrives, `range` is what was announced.
        public let body: GrowingBody

        public init(_ range: Range<Int>, _ body: GrowingBody) {
            self.range = range
            self.body = body
        }

        /// Where in its body the bytes of `part` of the representation stand.
        public func bodyRange(of part: Range<Int>) -> Range<Int> {
            part.lowerBound - range.lowerBound..<part.upperBound - range.lowerBound
        }
    }

    /// Runs kept of one representation: enough for a player that seeks, few enough to go through them one by one.
    public static let mostRuns = 32

    /// The runs, in order; none overlap. Those that are stored do not touch either.
    public let runs: [Run]
    /// The length of the whole representation, in bytes; `nil` while it is unknown.
    public let length: Int?

    /// - Parameters:
    ///   - runs: in order, none overlapping.
    ///   - length: of the whole in bytes, if it is known.
    public init(_ runs: [Run], length: Int?) {
        self.runs = runs
        self.length = length
    }

    /// Which bytes are there.
    public var content: PartialContent { PartialContent(runs.map(\.range), of: length) }
    /// Whether the runs are the whole.
    public var isComplete: Bool { content.isComplete }
    /// Bytes of memory of the bodies.
    public var retained: Int { GrowingBody.retained(by: runs.map(\.body)) }

    /// How many bodies the runs are made of.
    var lenderCount: Int { runs.reduce(0) { $0 + 1 + $1.body.lenderCount } }

    /// The most bytes of overhead that joining these parts with others may add to that of their response: each run may
    /// cut one of the others in two, and a small whole is packed with its body.
    var mostJoinedCharge: Int {
        let mayBePacked = length ?? runs.last?.range.upperBound ?? 0 <= StoredResponse.packedBody
        let packed = mayBePacked ? StoredResponse.packedBody : 0
        return 2 * runs.count * Charge.lender + packed
    }

    /// These parts with another run, which takes the place of what is stored of the same bytes.
    /// - Parameter length: of the whole, if the new run's message told it.
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

    /// These parts with runs that touch made one, and within the bounds: the smallest go, but never `kept`. All bodies
    /// must have ended.
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
        // Read from end to end in small ranges, the one run would grow past all bounds.
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
    /// The bytes `part` of the run, whose body must have ended.
    fileprivate func cut(to part: Range<Int>, _ budget: MemoryBudget) -> Self {
        if part == range { return self }
        return Self(part, GrowingBody(joining: [(body, bodyRange(of: part))], budget: budget))
    }
}

extension Range<Int> {
    /// What of the range stands before `end`; `nil` for nothing.
    fileprivate func part(before end: Int) -> Self? {
        lowerBound < end ? lowerBound..<Swift.min(upperBound, end) : nil
    }

    /// What of the range stands from `start` on; `nil` for nothing.
    fileprivate func part(from start: Int) -> Self? {
        upperBound > start ? Swift.max(lowerBound, start)..<upperBound : nil
    }
}
