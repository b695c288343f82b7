/// The parts of a response's head that a client must know to read on (RFC 9112 §6.3).
struct AnswerHead {
    enum Framing: Equatable {
        case length(Int)
        case chunked
        /// Neither: the body ends with the connection.
        case untilClose
    }

    var status = 0
    var framing = Framing.untilClose
    /// Whether the connection ends with this response.
    var closes = false

    /// Interim (RFC 9110 §15.2): another head follows.
    var isInterim: Bool { status < 200 }
    /// Whether a body does not follow, in spite of the fields (RFC 9110 §8.6).
    var hasNoBody: Bool { isInterim || status == 204 || status == 304 }
}

/// Finds and reads heads of responses.
///
/// Most responses of a run begin with the same bytes as the response before. A head depends only on its bytes, and a
/// known head ends with the first empty line, so one comparison is all the work for such a response.
struct AnswerHeadParser {
    enum Outcome {
        /// A head, and the place after it.
        case head(AnswerHead, end: Int)
        case incomplete
        case malformed
    }

    private var known: [UInt8] = []
    private var knownHead = AnswerHead()

    private static let emptyLine = Array("\r\n\r\n".utf8)
    private static let version = Array("http/1.".utf8)
    private static let contentLength = Array("content-length:".utf8)
    private static let transferEncoding = Array("transfer-encoding:".utf8)
    private static let connection = Array("connection:".utf8)

    /// The head that begins at `start`.
    mutating func parse(_ bytes: Span<UInt8>, from start: Int) -> Outcome {
        if !known.isEmpty, System.has(known, in: bytes, at: start) { return .head(knownHead, end: start + known.count) }
        guard let blank = System.find(Self.emptyLine, in: bytes, from: start) else { return .incomplete }
        let end = blank + 4
        guard let head = Self.read(bytes, from: start, to: end) else { return .malformed }
        known = (start..<end).map { bytes[$0] }
        knownHead = head
        return .head(head, end: end)
    }

    private static func read(_ bytes: Span<UInt8>, from start: Int, to end: Int) -> AnswerHead? {
        var head = AnswerHead()
        guard matches(version, bytes, start, end), start + 12 < end, let status = decimal(bytes, start + 9, start + 12)
        else { return nil }
        head.status = status
        var length: Int?
        var isChunked = false
        var line = start
        while line < end {
            let first = bytes[line] | 0x20
            var next = line
            while next < end, bytes[next] != 0x0a { next += 1 }
            if first == 0x63, matches(contentLength, bytes, line, end) {
                guard let value = decimal(bytes, line + contentLength.count, next), length == nil || length == value
                else { return nil }
                length = value
            } else if first == 0x63, matches(connection, bytes, line, end) {
                if has(Array("close".utf8), bytes, line, next) { head.closes = true }
            } else if first == 0x74, matches(transferEncoding, bytes, line, end) {
                guard has(Array("chunked".utf8), bytes, line, next) else { return nil }
                isChunked = true
            }
            line = next + 1
        }
        if isChunked {
            head.framing = .chunked
        } else if let length {
            head.framing = .length(length)
        }
        return head
    }

    /// `word` is in lower case; the bytes may be in either.
    private static func matches(_ word: [UInt8], _ bytes: Span<UInt8>, _ start: Int, _ end: Int) -> Bool {
        guard start + word.count <= end else { return false }
        for index in word.indices {
            let byte = bytes[start + index]
            guard (0x41...0x5a ~= byte ? byte | 0x20 : byte) == word[index] else { return false }
        }
        return true
    }

    private static func has(_ word: [UInt8], _ bytes: Span<UInt8>, _ start: Int, _ end: Int) -> Bool {
        (start..<end).contains { matches(word, bytes, $0, end) }
    }

    /// Digits with white space around them; nil for any other text, and for more than eighteen digits.
    private static func decimal(_ bytes: Span<UInt8>, _ start: Int, _ end: Int) -> Int? {
        var value = 0, digits = 0, isOver = false
        for index in start..<end {
            let byte = bytes[index]
            if 0x30...0x39 ~= byte {
                guard !isOver, digits < 18 else { return nil }
                value = value * 10 + Int(byte - 0x30)
                digits += 1
            } else {
                guard byte == 0x20 || byte == 0x09 || byte == 0x0d else { return nil }
                isOver = digits > 0
            }
        }
        return digits > 0 ? value : nil
    }
}
