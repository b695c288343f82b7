/// A page of the demo's origin. Pure: a response depends only on the arguments of `answer`.
enum DemoPage: String, CaseIterable {
    case index = "/"
    case slow = "/slow"
    case `private` = "/private"
    case clock = "/clock"
    case flaky = "/flaky"

    /// A response and its timing: the head is sent after `delay`, then the pieces, each after its own delay
    /// (nanoseconds).
    struct Answer {
        struct Piece {
            var delay: Int64 = 0
            var text: String
        }

        var status = "200 OK"
        var fields: [String] = []
        var delay: Int64 = 0
        var pieces: [Piece] = []
    }

    /// The seconds for which the clock page stays the same.
    static let clockStep: Int64 = 5

    private static let millisecond: Int64 = 1_000_000

    /// - Parameters:
    ///   - count: the number of requests for this page, including this one.
    ///   - now: seconds since 1970.
    ///   - validator: the value of `If-None-Match`, an entity tag with its quotes.
    func answer(_ count: Int, at now: Int64, ifNoneMatch validator: String?) -> Answer {
        var answer = Answer(fields: ["Content-Type: text/plain"])
        switch self {
        case .index:
            answer.fields.append("Cache-Control: max-age=60")
            answer.pieces = [Answer.Piece(text: Self.allCases.map(\.rawValue).joined(separator: "\n") + "\n")]
        case .slow:
            answer.fields.append("Cache-Control: max-age=10")
            answer.pieces = (1...20).map {
                Answer.Piece(delay: 100 * Self.millisecond, text: "line \($0) of 20, fetch \(count)\n")
            }
        case .private:
            answer.fields += ["Cache-Control: private", "Set-Cookie: visitor=\(count)"]
            answer.delay = 500 * Self.millisecond
            answer.pieces = [Answer.Piece(text: "for visitor \(count) only\n")]
        case .clock:
            let tag = "\"\(now / Self.clockStep)\""
            answer.fields += ["Cache-Control: max-age=1", "ETag: \(tag)"]
            answer.delay = 300 * Self.millisecond
            if validator == tag {
                answer.status = "304 Not Modified"
            } else {
                answer.pieces = [Answer.Piece(text: "step \(now / Self.clockStep), fetch \(count)\n")]
            }
        case .flaky:
            answer.delay = 200 * Self.millisecond
            if count % 3 == 0 {
                answer.status = "503 Service Unavailable"
                answer.pieces = [Answer.Piece(text: "fetch \(count) fails\n")]
            } else {
                answer.fields.append("Cache-Control: max-age=1, stale-if-error=60")
                answer.pieces = [Answer.Piece(text: "fetch \(count) is fine\n")]
            }
        }
        return answer
    }
}
