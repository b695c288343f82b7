/// One response of HTTP/2 as text of HTTP/1.1, which the caller takes as it comes.
///
/// ```
/// waiting ─(interim heads)… final head→ content ─the stream's end→ ended
/// waiting, content ─a reset, or the connection's end→ cut
/// ```
struct FramedResponse: Sendable {
    private enum Phase: Equatable {
        case waiting
        case content(isChunked: Bool)
        case ended
        case cut
    }

    private struct Piece {
        let bytes: [UInt8]
        let isContent: Bool
    }

    /// Whether the caller sees the end of the connection behind it.
    private(set) var endsConnection: Bool
    /// Whether its head says `Connection: close`.
    private var announcesEnd: Bool
    private let method: String
    private var phase = Phase.waiting
    /// What the caller has not taken; the first piece from `offset` on.
    private var pieces: [Piece] = []
    private var first = 0
    private var offset = 0

    init(to request: FramedRequest) {
        method = request.method
        endsConnection = request.endsConnection
        announcesEnd = request.endsConnection
    }

    /// Whether the caller has taken all of a response.
    var isOver: Bool { phase == .ended && isEmpty }
    /// Whether the caller has taken all of what came of it.
    var isCut: Bool { phase == .cut && isEmpty }
    var isEmpty: Bool { first == pieces.count }

    // MARK: - In

    /// A field section: of an interim response, of the response, or trailers.
    mutating func add(_ fields: [FieldLine]) {
        switch phase {
        case .waiting: if let next = head(fields) { phase = next }
        case .content(isChunked: true):
            write("0\r\n")
            for field in fields { write(field) }
            write("\r\n")
            phase = .content(isChunked: false)
        case .content(isChunked: false), .ended, .cut: break
        }
    }

    /// - Returns: the phase behind a final head.
    private mutating func head(_ fields: [FieldLine]) -> Phase? {
        let status = fields.first { $0.name == ":status" }.map { String(decoding: $0.value, as: UTF8.self) } ?? "000"
        write("HTTP/1.1 \(status) \r\n")
        for field in fields where !field.name.hasPrefix(":") { write(field) }
        defer { write("\r\n") }
        guard !status.hasPrefix("1") else { return nil }
        if announcesEnd { write("Connection: close\r\n") }
        let hasContent = method != "HEAD" && status != "204" && status != "304"
        let isChunked = hasContent && !fields.contains { $0.name == "content-length" }
        if isChunked { write("Transfer-Encoding: chunked\r\n") }
        return .content(isChunked: isChunked)
    }

    mutating func add(content: [UInt8]) {
        guard case .content(let isChunked) = phase, !content.isEmpty else { return }
        if isChunked { write(String(content.count, radix: 16) + "\r\n") }
        pieces.append(Piece(bytes: content, isContent: true))
        if isChunked { write("\r\n") }
    }

    mutating func end() {
        switch phase {
        case .content(let isChunked):
            if isChunked { write("0\r\n\r\n") }
            phase = .ended
        case .waiting: phase = .cut
        case .ended, .cut: break
        }
    }

    /// The other end does not want the rest of the request: HTTP/1.1 has no way to go on.
    mutating func refuseRest() { (endsConnection, announcesEnd) = (true, true) }

    /// The other end takes no more requests. How the connection ends is its affair.
    mutating func announceEnd() { announcesEnd = true }

    /// The stream is closed.
    mutating func close() {
        guard phase != .ended else { return }
        phase = .cut
    }

    private mutating func write(_ text: String) { pieces.append(Piece(bytes: Array(text.utf8), isContent: false)) }

    /// The name as it is usually written, for tests that look at the text.
    private mutating func write(_ field: FieldLine) {
        let words = field.name.split(separator: "-", omittingEmptySubsequences: false)
        let name = words.map { $0.prefix(1).uppercased() + $0.dropFirst() }.joined(separator: "-")
        pieces.append(Piece(bytes: Array("\(name): ".utf8) + field.value + [0x0D, 0x0A], isContent: false))
    }

    // MARK: - Out

    /// Moves text into `buffer`.
    /// - Returns: how many bytes, and how many of them are content.
    mutating func take(into buffer: inout [UInt8], _ range: Range<Int>) -> (all: Int, content: Int) {
        var (all, content) = (0, 0)
        while first < pieces.count, all < range.count {
            let piece = pieces[first]
            let count = min(piece.bytes.count - offset, range.count - all)
            let place = range.lowerBound + all
            Self.copy(piece.bytes, offset, count, to: &buffer, at: place)
            all += count
            if piece.isContent { content += count }
            offset += count
            if offset == piece.bytes.count { (first, offset) = (first + 1, 0) }
        }
        if first == pieces.count {
            pieces.removeAll(keepingCapacity: true)
            first = 0
        }
        return (all, content)
    }

    /// By bytes: a debug build replaces a range of an array by elements.
    private static func copy(_ bytes: [UInt8], _ start: Int, _ count: Int, to buffer: inout [UInt8], at place: Int) {
        unsafe bytes.withUnsafeBytes { bytes in
            unsafe buffer.withUnsafeMutableBytes { buffer in
                unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[place..<place + count])
                    .copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[start..<start + count]))
            }
        }
    }
}
