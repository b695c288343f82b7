/// What has been received of a body: its length, its beginning, and whether it is the expected pattern so far.
struct Body: Sendable {
    private(set) var length = 0
    private(set) var kept: [UInt8] = []
    private(set) var isIntact = true
    private(set) var trailers: [String] = []
    var pattern = Pattern()

    /// Of a pattern, and of anything else: more than any literal body of a test, or a page of `/status` with hundreds
    /// of fetches.
    static let keepsAtMost = 16384
    private static let keepsOfOthers = 1 << 20

    var text: String { String(decoding: kept, as: UTF8.self) }

    mutating func append(_ bytes: ArraySlice<UInt8>) {
        if isIntact { isIntact = pattern.matches(bytes, at: length) }
        let limit = isIntact ? Self.keepsAtMost : Self.keepsOfOthers
        if kept.count < limit { kept += bytes.prefix(limit - kept.count) }
        length += bytes.count
    }

    mutating func append(trailer: String) { trailers.append(trailer) }
}

/// Takes a body out of the bytes of a connection (RFC 9112 §6).
///
///     sized ─all bytes→ ended        size ─n→ data ─n bytes→ dataEnd ─CRLF→ size ─0→ trailers ─empty line→ ended
struct BodyReader: Sendable {
    enum Phase: Sendable, Equatable {
        case sized(Int)
        case untilClose
        case size
        case data(Int)
        case dataEnd
        case trailers
        case ended
        case malformed
    }

    private(set) var phase: Phase
    private var line: [UInt8] = []

    static func sized(_ length: Int) -> BodyReader { BodyReader(phase: length == 0 ? .ended : .sized(length)) }
    static var chunked: BodyReader { BodyReader(phase: .size) }
    static var untilClose: BodyReader { BodyReader(phase: .untilClose) }

    var isEnded: Bool { phase == .ended }
    var isInChunk: Bool {
        switch phase {
        case .data, .dataEnd: true
        case .sized, .untilClose, .size, .trailers, .ended, .malformed: false
        }
    }

    /// Reads what belongs to the body; returns where the rest begins.
    mutating func read(_ bytes: [UInt8], from start: Int, into body: inout Body) -> Int {
        var index = start
        while index < bytes.count {
            switch phase {
            case .ended, .malformed:
                return index
            case .untilClose:
                body.append(bytes[index...])
                return bytes.count
            case .sized(let left):
                let count = min(left, bytes.count - index)
                body.append(bytes[index..<index + count])
                index += count
                phase = count == left ? .ended : .sized(left - count)
            case .data(let left):
                let count = min(left, bytes.count - index)
                body.append(bytes[index..<index + count])
                index += count
                phase = count == left ? .dataEnd : .data(left - count)
            case .size, .dataEnd, .trailers:
                if bytes[index] == 0x0A {
                    lineEnded(into: &body)
                } else if bytes[index] != 0x0D {
                    line.append(bytes[index])
                }
                index += 1
            }
        }
        return index
    }

    private mutating func lineEnded(into body: inout Body) {
        let text = String(decoding: line, as: UTF8.self)
        line = []
        switch phase {
        case .size:
            guard let size = Int(text.prefix { $0 != ";" }, radix: 16) else { return phase = .malformed }
            phase = size == 0 ? .trailers : .data(size)
        case .dataEnd:
            phase = text.isEmpty ? .size : .malformed
        case .trailers:
            if text.isEmpty { phase = .ended } else { body.append(trailer: text) }
        case .sized, .untilClose, .data, .ended, .malformed:
            break
        }
    }
}
