import Bytes
import Storage

/// Sending parts of a representation, some of which may still be arriving.
extension StoredParts {
    /// The bytes of `wanted`, run by run; all of them must be there or on their way.
    func sources(of wanted: Range<Int>) -> Delivery.Sources {
        var row: [Delivery.Source] = []
        var end = wanted.lowerBound
        for run in runs {
            let part = run.range.clamped(to: wanted)
            guard !part.isEmpty else { continue }
            // Never a lie: what is not there is not passed over.
            guard part.lowerBound == end else { break }
            end = part.upperBound
            row.append(run.source(of: part))
        }
        if end < wanted.upperBound { row.append(.lost) }
        return row.count == 1 ? .one(row[0]) : .row(row)
    }

    /// The bytes of `wanted` as they lie in memory, all of them there.
    func completePieces(of wanted: Range<Int>) -> [ByteSlice] {
        runs.flatMap { run -> [ByteSlice] in
            let part = run.range.clamped(to: wanted)
            guard !part.isEmpty, let pieces = run.body.completePieces else { return [] }
            return CompleteBodyReader(pieces, part: run.bodyRange(of: part)).allPieces
        }
    }
}

extension StoredParts.Run {
    fileprivate func source(of part: Range<Int>) -> Delivery.Source {
        if let pieces = body.completePieces {
            return .complete(CompleteBodyReader(pieces, part: bodyRange(of: part), of: ShortList(one: body)))
        }
        guard let cursor = body.attach() else { return .lost }
        return .arriving(body, cursor, part: bodyRange(of: part))
    }
}
