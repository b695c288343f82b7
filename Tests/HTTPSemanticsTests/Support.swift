import Bytes
import HTTPSemantics
import Testing

/// One line of a table: the clause and what it promises, the fields it is about, what must come out.
struct Row<Expected: Sendable>: Sendable, CustomTestStringConvertible {
    let clause: String
    let fields: String
    let expected: Expected

    init(_ clause: String, _ fields: String, _ expected: Expected) {
        (self.clause, self.fields, self.expected) = (clause, fields, expected)
    }

    var testDescription: String { "\(clause): \(fields.isEmpty ? "(no fields)" : fields)" }
}

/// 06 Nov 1994 08:49:37 GMT, when the responses of the tables arrive unless they say otherwise.
let arrival = Moment(monotonic: 1_000_000_000_000, wall: 784_111_777)

extension Moment {
    func after(_ seconds: Double) -> Moment {
        Moment(monotonic: monotonic + Int64(seconds * 1e9), wall: wall + Int64(seconds.rounded(.down)))
    }
}

extension ResponseFacts {
    /// Whether a request that asks for nothing special gets it without a validation (RFC 9111 §4.2: freshness_lifetime
    /// > current_age).
    func isFresh(at now: Moment) -> Bool {
        if case .fresh = reuse(for: .none, at: now) { true } else { false }
    }
}

/// A head of lines that a line break separates. `{-60}` stands for the date 60 seconds before `arrival`.
func head(_ text: String) -> HeadBlock {
    var lines = ""
    for line in text.split(separator: "\n") {
        guard let colon = line.firstIndex(of: ":") else { continue }
        lines += line[...colon] + " " + withDates(line[line.index(after: colon)...].drop { $0 == " " }) + "\r\n"
    }
    return HeadBlock(lines: ByteSlice(lines))
}

private func withDates(_ text: Substring) -> String {
    guard let open = text.firstIndex(of: "{"), let close = text.firstIndex(of: "}"),
        let offset = Int64(text[text.index(after: open)..<close])
    else { return String(text) }
    return text[..<open] + date(offset) + withDates(text[text.index(after: close)...])
}

/// The HTTP date `offset` seconds from `arrival`.
func date(_ offset: Int64) -> String {
    let buffer = ByteBuffer(capacity: 32)
    HTTPDate.append(arrival.wall + offset, to: buffer)
    return String(buffer.copied())
}

/// The facts of a response with the fields of `text`, whose request was sent `delay` seconds before `arrival`.
func facts(
    _ text: String, status: UInt16 = 200, delay: Double = 0, policy: CachingPolicy = CachingPolicy()
) -> ResponseFacts {
    let block = head(text)
    return ResponseFacts(
        status: Status(status), fields: block.view, requestTime: arrival.after(-delay), responseTime: arrival,
        policy: policy
    )
}

func request(_ text: String, ignoring policy: RequestDirectivePolicy = .honoursAll) -> RequestDirectives {
    let block = head(text)
    return RequestDirectives(block.view, ignoring: policy)
}

/// The field lines of a head as text, one per line.
func text(_ block: HeadBlock) -> String {
    String(block.bytes).split(separator: "\r\n").joined(separator: "\n")
}

/// What `write` appends to an empty buffer.
func written(_ write: (ByteBuffer) -> Void) -> String {
    let buffer = ByteBuffer(capacity: 64)
    write(buffer)
    return String(buffer.copied())
}
