import Bytes
import HTTPSemantics
import Storage

/// The content of a plain hit, made from a complete stored response. It is the same as an `Answer` makes, which handles
/// every case and costs more.
enum HitContent {
    case whole
    /// 206 with one range.
    case part(Range<Int>)
    /// 304; it repeats some of these stored fields.
    case notModified(HeadBlock)

    /// Request fields with which the response may be less than the whole representation.
    private static let conditional = FieldSet(.ifNoneMatch, .ifModifiedSince, .range)

    /// `nil` if a `Transaction` must decide: several ranges, or a range that is not satisfiable.
    static func of(_ stored: StoredResponse, length: Int, for requestFields: FieldView, maxRanges: Int) -> HitContent? {
        guard !requestFields.present.isDisjoint(with: Self.conditional) else { return .whole }
        if ClientConditions.apply(to: requestFields) {
            let storedHead = stored.head
            if ClientConditions.evaluate(requestFields, stored: storedHead.view, facts: stored.facts) == .notModified {
                return .notModified(storedHead)
            }
        }
        guard requestFields.contains(.range), stored.facts.status == .ok else { return .whole }
        guard maxRanges > 0, let range = RangeRequest.single(requestFields, length: length) else { return nil }
        return .part(range)
    }

    func status(of stored: StoredResponse) -> Status {
        switch self {
        case .whole: stored.facts.status
        case .part: .partialContent
        case .notModified: .notModified
        }
    }

    func part(ofLength length: Int) -> Range<Int> {
        switch self {
        case .whole: 0..<length
        case .part(let range): range
        case .notModified: 0..<0
        }
    }

    /// Status line and fields up to `Content-Length`, as an `Answer` writes them.
    func writeHead(of stored: StoredResponse, length: Int, to out: ByteBuffer) {
        let status = status(of: stored)
        out.appendStatusLine(status)
        switch self {
        case .whole:
            out.append(stored.fieldLines)
            if !status.forbidsContent { out.appendField("Content-Length", UInt64(length)) }
        case .part(let range):
            out.appendFieldsOfPart(of: stored)
            out.append(.part(range, of: length))
            out.appendField("Content-Length", UInt64(range.count))
        case .notModified(let storedHead):
            out.appendFieldsOfNotModified(storedHead.view)
        }
    }
}
