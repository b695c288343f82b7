import Bytes
import Storage

/// Sending parts of a representation, some of which may still be arriving.
extension StoredParts {
    /// The sources for the bytes of `wanted`, run by run. All of the bytes must be stored or arriving.
    func sources(of wanted: Range<Int>) -> Delivery.Sources {
        var row: [Delivery.Source] = []
        var end = wanted.lowerBound
        for run in runs {
            let part = run.range.clamped(to: wanted)
            guard !part.isEmpty else { continue }
            // Missing bytes are not skipped: the response ends in front of them with `.lost`.
            guard part.lowerBound == end else { break }
            end = part.upperBound
            row.append(run.source(of: part))
        }
        if end < wanted.upperBound { row.append(.lost) }
        return row.count == 1 ? .one(row[0]) : .row(row)
    }

    /// The bytes of `wanted` as slices of the stored pieces. All of the bytes must be stored.
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
