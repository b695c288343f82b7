import Bytes
public import HTTPSemantics

/// A finished request, as the access log reports it. The texts (`AccessLogText`) are in the batch that the record was
/// appended to; the record has their places. 80 bytes: each cache line saved makes a hit cheaper.
public struct AccessLogRecord: Sendable {
    /// Wall clock at the request's first byte: milliseconds since 1970-01-01T00:00:00Z.
    public var started: Int64
    /// From the first byte of the request to the last of the response, monotonic, in nanoseconds.
    public var duration: UInt64
    // `.max` stands for `nil`: an optional would take sixteen bytes.
    @usableFromInline var firstByteTime = UInt64.max
    @usableFromInline var upstreamTime = UInt64.max
    /// Bytes of response content sent (combined format's `%b`: without the head).
    public var bodyBytesSent: UInt64 = 0
    /// The number of the operation that the request led or joined, the same in all lines of one fetch; 0 if there was
    /// none.
    public var operation: UInt64 = 0
    /// The status sent; 0 if the connection ended before.
    public var status: UInt16 = 0
    /// The origin's status; 0 if no origin was asked or no response came.
    public var upstreamStatus: UInt16 = 0
    /// `nil` if the request's head could not be parsed.
    public var version: HTTPVersion?
    public var verdict: Verdict = .refused
    public var role: Role = .none
    /// Whether the client left, or the response was cut off, before the response's end.
    public var isAborted = false
    /// How often the origin's response broke off and went on by another exchange.
    public var resumes: UInt8 = 0
    /// Whether a text was longer than its limit.
    private(set) var isClipped = false
    /// Bytes of the request's identifier, which stands behind the texts; 0: it has none.
    private var requestIDLength: UInt8 = 0
    /// Bytes of what the handshake has agreed on, which stands behind the identifier; 0: there was no TLS.
    private var securityLength: UInt8 = 0
    /// The start of the first text in the batch's texts; the others follow in the order of `AccessLogText`.
    private var textStart: UInt32 = 0
    /// The end of each text, counted from `textStart`.
    private var textEnds = InlineArray<8, UInt16>(repeating: 0)

    /// Set the other properties afterwards.
    public init(started: Int64, duration: UInt64, firstByte: UInt64? = nil) {
        self.started = started
        self.duration = duration
        self.firstByte = firstByte
    }

    /// From the first byte of the request to the first of the response, in nanoseconds; `nil` if no byte was sent.
    @inlinable public var firstByte: UInt64? {
        get { firstByteTime == .max ? nil : firstByteTime }
        set { firstByteTime = newValue ?? .max }
    }

    /// From handing the request to the pool to the end of the origin's response, or to its failure, in nanoseconds;
    /// `nil` if no origin was asked.
    @inlinable public var upstreamDuration: UInt64? {
        get { upstreamTime == .max ? nil : upstreamTime }
        set { upstreamTime = newValue ?? .max }
    }
}

/// The parts of a logged request that have no fixed size.
public enum AccessLogText: UInt8, CaseIterable, Sendable {
    /// The client's address as text, without the port.
    case client
    case method, host, target
    /// The address of the origin's server that answered or failed, as text with the port.
    case upstream
    /// The reason that a response was not shared or stored, the limit that was reached, or the failure of the origin:
    /// one of the program's own words, as in `Cache-Status`.
    case detail
    case referer, userAgent

    /// The most bytes that are kept. A longer text is clipped, and the record says so.
    @inlinable public var limit: Int {
        switch self {
        case .client, .upstream, .detail: 64
        case .method: 32
        case .host: 256
        case .target: 2048
        case .referer: 1024
        case .userAgent: 512
        }
    }

    /// The most bytes that one record's texts can take.
    static let allLimits = allCases.reduce(0) { $0 + $1.limit }
}

extension AccessLogRecord {
    /// Places the texts that follow from `start` on. `start` fits 32 bits (`AccessLogBatch.mostCapacity`).
    @inline(__always)
    mutating func beginTexts(at start: Int) { textStart = UInt32(truncatingIfNeeded: start) }

    /// Appends the next text to `output`, up to its limit.
    @inline(__always)
    mutating func keep(_ bytes: Span<UInt8>, as text: AccessLogText, in output: inout OutputSpan<UInt8>) {
        let kept = bytes.extracting(first: text.limit)
        if kept.count < bytes.count { isClipped = true }
        if !kept.isEmpty { output.append(copying: kept) }
        let index = Int(text.rawValue)
        // All texts together are far less than 64 KiB: `AccessLogText.allLimits`.
        textEnds[index] = (index == 0 ? 0 : textEnds[index &- 1]) &+ UInt16(truncatingIfNeeded: kept.count)
    }

    /// The longest identifier that is kept, as long as any can be (`FieldView.requestID`).
    static let longestRequestID = 128

    /// Notes that an identifier of so many bytes stands behind the texts.
    mutating func noteRequestID(length: Int) { requestIDLength = UInt8(clamping: length) }

    /// The range of the request's identifier in the batch's texts.
    var requestIDRange: Range<Int> {
        let start = range(of: .userAgent).upperBound
        return start..<start + Int(requestIDLength)
    }

    /// The most bytes that are kept of what a handshake has agreed on: all but the end of a name of 200 bytes or more.
    static let longestSecurity = 255

    /// Notes that so many bytes about the handshake stand behind the identifier.
    /// - Parameter isClipped: whether there were more.
    mutating func noteSecurity(length: Int, isClipped: Bool) {
        securityLength = UInt8(clamping: length)
        if isClipped { self.isClipped = true }
    }

    /// The range of what the handshake has agreed on (`AccessLogSecurity`) in the batch's texts.
    var securityRange: Range<Int> {
        let start = requestIDRange.upperBound
        return start..<start + Int(securityLength)
    }

    /// The range of one text in the batch's texts.
    @inline(__always)
    func range(of text: AccessLogText) -> Range<Int> { range(from: text, through: text) }

    /// The range of the adjacent texts from `first` to `last`.
    @inline(__always)
    func range(from first: AccessLogText, through last: AccessLogText) -> Range<Int> {
        let start = first == .client ? 0 : Int(textEnds[Int(first.rawValue) &- 1])
        return Int(textStart) &+ start..<Int(textStart) &+ Int(textEnds[Int(last.rawValue)])
    }
}
