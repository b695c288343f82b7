public import Bytes

/// The content of a response that may break off, with all that is needed to request the missing rest (RFC 9110 §14.2,
/// §13.1.5), and to tell whether a response is that rest (§15.3.7.3).
///
/// The rest continues bytes that clients have already, so it must belong to the same representation beyond doubt: under
/// a strong tag, with the same type, coding, date and length. The server that sent the beginning may leave out date and
/// type in a 206 (§15.3.7), but not the coding: an origin that encodes responses, but no parts, would send the same.
/// Another server must send all of them: it may have another representation under the same tag.
///
/// A value. It depends on its arguments only.
public struct ResumableContent: Sendable {
    /// The fields whose values all responses must share, the tag first.
    private static let compared: [KnownField] = [.etag, .lastModified, .contentType, .contentEncoding]

    /// The values of `compared`, as the origin sent them.
    private let identity: ByteSlice
    private let tag: Range<Int>
    /// Whether the content is a part that was requested: then it ends with the part.
    private let isPart: Bool
    /// The offset, in the representation, of the content's first byte.
    private let first: Int
    /// The offset behind its last byte, and the length of the representation; `nil` until the origin states them.
    private var end: Int?, length: Int?

    /// `nil` if the content cannot be resumed. The method must be GET.
    /// - Parameters:
    ///   - fields: the fields as the origin sent them.
    ///   - contentLength: the length of the content; `nil` if it is not announced.
    ///   - part: the part of the representation that the content is; `nil` if no range was requested.
    public init?(_ fields: FieldView, status: Status, contentLength: Int?, part: ReceivedPart? = nil) {
        guard status == (part == nil ? .ok : .partialContent), part != nil || !fields.contains(.contentRange),
            let value = fields.onlyValue(of: .etag), let parsed = EntityTag(value), !parsed.isWeak,
            !Self.forbidsRanges(fields)
        else { return nil }
        identity = Self.identity(of: fields)
        tag = 0..<value.count
        isPart = part != nil
        first = part?.range.lowerBound ?? 0
        end = part?.range.upperBound ?? contentLength
        length = part == nil ? contentLength : part?.length
    }

    /// The length of the content; `nil` until the origin states it.
    public var contentLength: Int? { end.map { $0 - first } }

    /// Appends `Range` and `If-Range`, with which the bytes after the first `received` ones are requested.
    public func writeConditions(after received: Int, to head: ByteBuffer) {
        let next = first + received
        let range: ByteRangeSpec = if isPart, let end { .between(next, end - 1) } else { .from(next) }
        head.appendName("Range")
        range.write(to: head)
        head.appendLineEnd()
        head.appendField("If-Range", identity.span.extracting(tag))
    }

    /// Notes the head of a response to the request for the rest.
    /// - Parameters: as in `init`; `received` is the number of bytes received so far, `isFromSameServer` whether the
    ///   server sent the beginning as well.
    /// - Returns: how many bytes there are once this response has ended; `nil` if it is not the rest, and nothing
    ///   changes.
    public mutating func noteRest(
        _ fields: FieldView, status: Status, contentLength: Int?, after received: Int, isFromSameServer: Bool
    ) -> Int? {
        guard status == .partialContent, case .part(let range, let total?)? = ContentRange(fields),
            range.lowerBound == first + received, total == length ?? total, range.upperBound <= end ?? total,
            contentLength ?? range.count == range.count, !ReceivedPart.hasSeveralParts(fields),
            agrees(fields, mayLeaveOut: isFromSameServer)
        else { return nil }
        (end, length) = (end ?? total, total)
        return range.upperBound - first
    }

    /// Whether the fields of a 206 have the same values.
    /// - Parameter mayLeaveOut: whether date and type may be missing.
    private func agrees(_ fields: FieldView, mayLeaveOut: Bool) -> Bool {
        let (known, found) = (identity.span, Self.identity(of: fields))
        var start = 0
        var foundStart = 0
        for field in Self.compared {
            guard let end = known.firstIndex(of: Self.separator, from: start),
                let foundEnd = found.span.firstIndex(of: Self.separator, from: foundStart)
            else { return false }
            let isLeftOut =
                mayLeaveOut && foundStart == foundEnd && (field == .lastModified || field == .contentType)
            guard isLeftOut || known.extracting(start..<end).isEqual(to: found.span.extracting(foundStart..<foundEnd))
            else { return false }
            (start, foundStart) = (end + 1, foundEnd + 1)
        }
        return true
    }

    /// Occurs in no value.
    private static let separator = UInt8(ascii: "\n")

    private static func identity(of fields: FieldView) -> ByteSlice {
        let values = ByteBuffer(capacity: 256)
        for field in compared {
            var line = fields.firstIndex(of: field)
            while let index = line {
                values.append(fields.value(at: index))
                values.append("\r")
                line = fields.firstIndex(of: field, from: index + 1)
            }
            values.append("\n")
        }
        return values.copied()
    }

    /// RFC 9110 §14.3.
    private static func forbidsRanges(_ fields: FieldView) -> Bool {
        var units = ListIterator(fields, .acceptRanges)
        while let unit = units.next() {
            if unit.isEqualIgnoringCase(to: "none") { return true }
        }
        return false
    }
}
