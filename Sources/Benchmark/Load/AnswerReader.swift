/// Follows the responses of one connection through the arriving bytes. Counts the bytes of a body, and keeps none of
/// them.
///
///     head ─interim→ head
///     head ─no body, or length 0→ (answered) head
///     head ─length→ body ─last byte→ (answered) head
///     head ─chunked→ chunks ─trailer's end→ (answered) head
///     head ─neither→ untilClose ─end of the connection→ (answered)
struct AnswerReader {
    struct Answer: Equatable {
        var status = 0
        /// Bytes of the body, as they came.
        var length = 0
        /// Whether the connection cannot be used again.
        var closes = false
    }

    enum Outcome: Equatable {
        /// A response has arrived whole.
        case answer(Answer)
        /// More bytes are needed. The bytes of an incomplete head must be passed again with them.
        case more
        case malformed
    }

    private enum Phase {
        case head
        case body(left: Int)
        case chunks(ChunkedBody)
        case untilClose
    }

    private var phase = Phase.head
    private var answer = Answer()

    /// Bytes of a sized body still to come, which may be discarded unread with `skip`.
    var bodyLeft: Int { if case .body(let left) = phase { left } else { 0 } }

    /// Continues at `position` in the first `count` bytes, and moves it behind the bytes that were read.
    mutating func read(_ bytes: [UInt8], count: Int, _ position: inout Int, _ parser: inout AnswerHeadParser) -> Outcome
    {
        read(bytes.span.extracting(..<count), &position, &parser)
    }

    private mutating func read(_ bytes: Span<UInt8>, _ position: inout Int, _ parser: inout AnswerHeadParser) -> Outcome
    {
        while true {
            switch phase {
            case .head:
                switch parser.parse(bytes, from: position) {
                case .incomplete: return .more
                case .malformed: return .malformed
                case .head(let head, let end):
                    position = end
                    if head.isInterim { continue }
                    answer = Answer(status: head.status, length: 0, closes: head.closes)
                    if head.hasNoBody { return answered() }
                    switch head.framing {
                    case .length(0): return answered()
                    case .length(let length): phase = .body(left: length)
                    case .chunked: phase = .chunks(ChunkedBody())
                    case .untilClose: phase = .untilClose
                    }
                }
            case .body(let left):
                let count = min(left, bytes.count - position)
                position += count
                return skip(count)
            case .chunks(var chunks):
                let outcome = chunks.read(bytes, &position)
                phase = .chunks(chunks)
                answer.length = chunks.length
                switch outcome {
                case .more: return .more
                case .malformed: return .malformed
                case .end: return answered()
                }
            case .untilClose:
                answer.length += bytes.count - position
                position = bytes.count
                return .more
            }
        }
    }

    /// Skips `count` bytes of a sized body that came: at most `bodyLeft`.
    mutating func skip(_ count: Int) -> Outcome {
        guard case .body(let left) = phase else { return .malformed }
        answer.length += count
        guard count >= left else {
            phase = .body(left: left - count)
            return .more
        }
        return answered()
    }

    /// The connection has ended. Returns the response if its body has no length, otherwise nil.
    mutating func ended() -> Answer? {
        guard case .untilClose = phase else { return nil }
        answer.closes = true
        return answer
    }

    private mutating func answered() -> Outcome {
        phase = .head
        return .answer(answer)
    }
}

/// The chunks of one body (RFC 9112 §7.1).
struct ChunkedBody {
    enum Outcome { case more, end, malformed }

    private enum Phase {
        case size(Int, digits: Int)
        /// The rest of a size line.
        case sizeLine(Int)
        case data(left: Int)
        /// The end of the line after a chunk's data.
        case dataEnd
        /// Bytes in the present line of the trailers, without its end.
        case trailer(Int)
    }

    private var phase = Phase.size(0, digits: 0)
    private(set) var length = 0

    mutating func read(_ bytes: Span<UInt8>, _ position: inout Int) -> Outcome {
        while position < bytes.count {
            if case .data(let left) = phase {
                let count = min(left, bytes.count - position)
                position += count
                length += count
                phase = count == left ? .dataEnd : .data(left: left - count)
                continue
            }
            let byte = bytes[position]
            position += 1
            switch phase {
            case .size(let size, let digits):
                if let digit = Character(Unicode.Scalar(byte)).hexDigitValue {
                    guard digits < 15 else { return .malformed }
                    phase = .size(size << 4 | digit, digits: digits + 1)
                } else {
                    guard digits > 0, byte == 0x0d || byte == 0x3b || byte == 0x20 || byte == 0x09 else {
                        return .malformed
                    }
                    phase = .sizeLine(size)
                }
            case .sizeLine(let size):
                if byte == 0x0a { phase = size == 0 ? .trailer(0) : .data(left: size) }
            case .dataEnd:
                guard byte == 0x0d || byte == 0x0a else { return .malformed }
                if byte == 0x0a { phase = .size(0, digits: 0) }
            case .trailer(let count):
                if byte == 0x0a {
                    if count == 0 { return .end }
                    phase = .trailer(0)
                } else if byte != 0x0d {
                    phase = .trailer(count + 1)
                }
            case .data: break
            }
        }
        return .more
    }
}
