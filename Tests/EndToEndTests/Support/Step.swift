/// One step of what the scripted origin does for a request; steps are performed in order.
///
///     origin.on("/page") { _ in [.head(200, "Content-Length: 10"), .pattern(0..<5), .gate(half), .pattern(5..<10)] }
indirect enum Step: Sendable {
    /// Exactly these bytes.
    case bytes([UInt8])
    /// A head with these fields; `Date` is that of the moment it is sent, unless it is among them (give `Date:` with no
    /// value for none).
    case start(Int, [String])
    /// These bytes as part of a body: left out when the request was HEAD.
    case payload([UInt8])
    /// A part of the pattern, made while it is sent.
    case stream(Pattern, Range<Int>)
    case wait(Duration)
    case gate(Gate)
    /// Goes on when the whole request body has come.
    case requestBody
    /// From now on nothing is read, not even the end of the connection, or everything again.
    case deaf(Bool)
    /// Sends back whatever comes, until the other side ends: a tunnel.
    case echo
    case reset
    case close
    /// Nothing more, ever; the connection stays.
    case silence
    case several([Step])
}

extension Step {
    // MARK: Heads

    /// A head and nothing else.
    static func head(_ status: Int, _ fields: String...) -> Step { .start(status, fields) }
    static func head(_ status: Int, _ fields: [String]) -> Step { .start(status, fields) }

    /// The bytes of `start`, now.
    static func headBytes(_ status: Int, _ fields: [String]) -> [UInt8] {
        var lines = ["HTTP/1.1 \(status) Scripted"] + fields.filter { $0.lowercased() != "date:" }
        if !fields.contains(where: { $0.lowercased().hasPrefix("date:") }) {
            lines.append("Date: \(System.httpDate())")
        }
        return Array((lines + ["", ""]).joined(separator: "\r\n").utf8)
    }

    static func interim(_ status: Int, _ fields: String...) -> Step {
        .bytes(Array((["HTTP/1.1 \(status) Interim"] + fields + ["", ""]).joined(separator: "\r\n").utf8))
    }

    // MARK: Whole responses

    /// A whole response with `Content-Length`.
    static func answer(_ status: Int, _ fields: String..., body: String = "") -> Step {
        answer(status, fields, body: body)
    }

    static func answer(_ status: Int, _ fields: [String], body: String = "") -> Step {
        let length = status == 304 || status == 204 ? [] : ["Content-Length: \(body.utf8.count)"]
        return .several([.head(status, fields + length), .payload(Array(body.utf8))])
    }

    /// A whole response with `length` bytes of a pattern.
    static func answer(_ status: Int, _ fields: String..., pattern length: Int, seed: Int = 0) -> Step {
        .several([.head(status, fields + ["Content-Length: \(length)"]), .stream(Pattern(seed: seed), 0..<length)])
    }

    // MARK: Bodies

    static func text(_ text: String) -> Step { .payload(Array(text.utf8)) }
    static func raw(_ text: String) -> Step { .bytes(Array(text.utf8)) }
    static func pattern(_ range: Range<Int>, seed: Int = 0) -> Step { .stream(Pattern(seed: seed), range) }

    static func chunk(_ text: String) -> Step { chunk(Array(text.utf8)) }
    static func chunk(pattern range: Range<Int>, seed: Int = 0) -> Step { chunk(Pattern(seed: seed).bytes(range)) }

    static func chunk(_ bytes: [UInt8]) -> Step {
        .payload(Array(String(bytes.count, radix: 16).utf8) + [13, 10] + bytes + [13, 10])
    }

    static func lastChunk(_ trailers: String...) -> Step {
        .payload(Array((["0"] + trailers + ["", ""]).joined(separator: "\r\n").utf8))
    }

    /// `length` bytes of the pattern, evenly in `pieces` over `time`; the first piece at once.
    static func pattern(_ length: Int, over time: Duration, in pieces: Int) -> Step {
        .several(
            (0..<pieces).flatMap { piece -> [Step] in
                let part = .pattern(length * piece / pieces..<length * (piece + 1) / pieces) as Step
                return piece == 0 ? [part] : [.wait(time / pieces), part]
            })
    }

    /// The single steps, in reverse: the next one is last.
    static func unfolded(_ steps: [Step]) -> [Step] {
        steps.reversed().flatMap { step -> [Step] in
            if case .several(let inner) = step { return unfolded(inner) }
            return [step]
        }
    }
}
