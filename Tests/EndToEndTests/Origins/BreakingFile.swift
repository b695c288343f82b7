/// A file as an origin serves it: whole, or the range that is requested under its tag. Its first responses break off.
struct BreakingFile: Sendable {
    let length: Int
    /// Where the first response ends, then the second one, and so on.
    var cuts: [Int] = []
    /// Whether the whole comes in chunks, without a length.
    var isChunked = false
    var fields = ["Cache-Control: max-age=600", "ETag: \"v1\"", "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT"]
    /// How a response breaks off.
    var end = Step.close
    /// What comes before the head of each part.
    var before: [Step] = []

    func steps(_ request: Received) -> [Step] {
        guard let range = Self.range(request, of: length) else { return whole(request) }
        let stop = stop(request, before: range.upperBound)
        return before + [Self.head(of: range, length, fields), .pattern(range.lowerBound..<stop)]
            + (stop < range.upperBound ? [end] : [])
    }

    private func whole(_ request: Received) -> [Step] {
        let stop = stop(request, before: length)
        guard isChunked else {
            return [.head(200, fields + ["Content-Length: \(length)"]), .pattern(0..<stop)]
                + (stop < length ? [end] : [])
        }
        let chunks = stride(from: 0, to: stop, by: 50_000).map { Step.chunk(pattern: $0..<min($0 + 50_000, stop)) }
        return [.head(200, fields + ["Transfer-Encoding: chunked"])] + chunks + [stop < length ? end : .lastChunk()]
    }

    private func stop(_ request: Received, before last: Int) -> Int {
        request.number <= cuts.count ? cuts[request.number - 1] : last
    }

    /// The head of a 206.
    static func head(of range: Range<Int>, _ length: Int, _ fields: [String]) -> Step {
        .head(
            206,
            fields + [
                "Content-Length: \(range.count)",
                "Content-Range: bytes \(range.lowerBound)-\(range.upperBound - 1)/\(length)",
            ])
    }

    /// The range that is requested; `nil` for the whole.
    static func range(_ request: Received, of length: Int) -> Range<Int>? {
        guard let ends = request["range"]?.dropFirst("bytes=".count).split(separator: "-"),
            let first = ends.first.flatMap({ Int($0) })
        else { return nil }
        return first..<(ends.count > 1 ? Int(ends[1]).map { $0 + 1 } ?? length : length)
    }
}
