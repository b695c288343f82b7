import Bytes
import HTTPSemantics
import Testing

/// One line of a table: the clause and what it promises, the fields it is about, what must come out.
struct Row<Expected: Sendable>: Sendable, CustomTestStringConvertible {
    let clause: String
    let fields: String
    let expected: Expected

    init(_ clause: String, _ fields: String, _ expected: Expected) {
        self.clause = clause
        self.fields = fields
        self.expected = expected
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
    /// Whether a request that asks for nothing special gets it without a validation (RFC 9111 §4.2: freshness_lifetime > current_age).
    func isFresh(at now: Moment) -> Bool {
        if case .fresh = reuse(for: .none, at: now) { true } else { false }
    }
}

/// A head of lines that a line break separates. `{-60}` stands for the date 60 seconds before `arrival`.
func head(_ text: String) -> HeadBlock {
    let buffer = ByteBuffer(capacity: 256)
    var lines: [FieldLine] = []
    var present: FieldSet = []
    for line in text.split(separator: "\n") {
        guard let colon = line.firstIndex(of: ":") else { continue }
        let start = buffer.count
        buffer.append(string: String(line[..<colon]))
        let nameEnd = buffer.count
        buffer.append(": ")
        let valueStart = buffer.count
        let value = line[line.index(after: colon)...].drop { $0 == " " }
        buffer.append(string: withDates(value))
        let field = KnownField.recognise(Array(line[..<colon].utf8).span)
        lines.append(FieldLine(name: ByteRange(start..<nameEnd), value: ByteRange(valueStart..<buffer.count), field: field))
        present.insert(field)
        buffer.append("\r\n")
    }
    return HeadBlock(bytes: buffer.span, lines: lines.span, present: present)
}

private func withDates(_ text: Substring) -> String {
    guard let open = text.firstIndex(of: "{"), let close = text.firstIndex(of: "}"),
          let offset = Int64(text[text.index(after: open)..<close]) else { return String(text) }
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
        status: Status(status), fields: block.view, requested: arrival.after(-delay), received: arrival, policy: policy
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
