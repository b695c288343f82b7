import Bytes
import HTTPSemantics
import Routing
import SharedTier
import Storage

/// Responses in the form that the shared tier has them.
extension StoredResponse {
    /// The head for a record: status line, fields and empty line.
    /// - Parameter fields: of the response, as they came or as they are stored.
    func headForTier(_ fields: FieldView, policy: CachingPolicy, length: Int?) -> ByteSlice {
        let (lines, kept) = (ByteBuffer(capacity: 512), ByteBuffer(capacity: 512))
        lines.append("HTTP/1.1 ")
        lines.append(decimal: UInt64(facts.status.code))
        lines.append(" \r\n")
        StoredFields.append(fields, facts: facts, policy: policy, dropping: FieldSet(.contentLength), to: kept)
        // A response that came from the tier before says so (`TierRecord.headForFetch`).
        var start = 0
        while let end = kept.span.firstIndex(of: UInt8(ascii: "\n"), from: start) {
            let line = kept.span.extracting(start..<end + 1)
            if !line.hasPrefix(TierRecord.statusLine) { lines.append(line) }
            start = end + 1
        }
        if let length {
            lines.append("Content-Length: ")
            lines.append(decimal: UInt64(length))
            lines.appendLineEnd()
        }
        lines.appendLineEnd()
        return lines.copied()
    }
}

extension TierRecord {
    /// The name of the tier in `Cache-Status`, and the beginning of that line.
    static let (cacheName, statusLine): (StaticString, StaticString) = (
        "coalesced-shared", "Cache-Status: coalesced-shared;"
    )

    /// The head as a fetch gets it: with its age, and with a member of `Cache-Status` that tells of the tier.
    /// - Parameters:
    ///   - age: in seconds.
    ///   - isHit: whether the response was there, rather than being fetched by another machine.
    func headForFetch(age: Int64, isHit: Bool) -> ByteSlice? {
        guard head.count > 2 else { return nil }
        let lines = ByteBuffer(capacity: head.count + 80)
        lines.append(head.span.extracting(first: head.count - 2))
        lines.append("Age: ")
        lines.append(decimal: UInt64(max(0, age)))
        lines.appendLineEnd()
        lines.append(Self.statusLine)
        lines.append(isHit ? " hit\r\n\r\n" : " fwd=miss; collapsed\r\n\r\n")
        return lines.copied()
    }
}

/// Requests in the form that the shared tier has them.
extension ClientRequest {
    /// The variant of the request under a `Vary` in the form of `tierVary`.
    func tierVariant(under vary: ByteSlice) -> (name: ByteSlice, selecting: ByteSlice) {
        guard !vary.isEmpty else { return (.empty, .empty) }
        let rule = varyRule(HeadBlock(lines: vary).view)
        let selecting = variant(under: rule).key.bytes
        return (TierKeys.variant(of: selecting.span), selecting)
    }

    /// `Vary` in a form that all machines agree on, as lines: the rule can be read from it again.
    func tierVary(of fields: FieldView) -> ByteSlice {
        let (rule, text) = (varyRule(fields), ByteBuffer(capacity: 64))
        var count = 0
        for index in 0..<rule.count {
            let name = rule.name(at: index)
            // Nominated by the codings of the response.
            if rule.isByCoding, name.span.isEqual(to: "accept-encoding") { continue }
            text.append(count == 0 ? "Vary: " : ",")
            text.append(name)
            count += 1
        }
        if count > 0 { text.appendLineEnd() }
        guard rule.isByCoding else { return text.copied() }
        var line = fields.firstIndex(of: .contentEncoding)
        while let index = line {
            text.appendField("Content-Encoding", fields.value(at: index))
            line = fields.firstIndex(of: .contentEncoding, from: index + 1)
        }
        return text.copied()
    }

    /// Whether a purge is one of a response to the request with these fields.
    func isMeant(by purge: TierPurge, _ fields: HeadBlock) -> Bool {
        let (key, value) = (key, purge.value)
        return switch purge.kind {
        case .everything: true
        case .url: key.url.isEqual(to: value.span)
        case .prefix: key.isBelow(value.span)
        case .tag, .group:
            TagTable.isTagged(fields.view, with: value.span, by: route.policy.tagFields, at: authority)
        }
    }
}

/// The mark of a request by which one machine of the shared tier reads a body from another: a member of `CDN-Loop` (RFC
/// 8586 §2) that names the fetch. Without it, a request that came back to its own machine would wait for itself.
enum TierMark {
    private static let start: StaticString = "; fetch="

    /// Appends the field line of a request for the body of the fetch under `token`.
    static func append(_ token: ByteSlice, to head: ByteBuffer) {
        head.append("CDN-Loop: ")
        head.append(TierRecord.cacheName)
        head.append(start)
        head.append(token)
        head.appendLineEnd()
    }

    /// The token in the last of the marks; `nil`: the request has none.
    static func token(in fields: FieldView) -> ByteSlice? {
        guard fields.contains(.cdnLoop) else { return nil }
        var members = ListIterator(fields, .cdnLoop, quoting: .quotedStrings)
        var found: ByteSlice?
        let (name, start) = (TierRecord.cacheName.utf8CodeUnitCount, start.utf8CodeUnitCount)
        while let member = members.next() {
            guard member.count > name + start, member.extracting(0..<name).isEqual(to: TierRecord.cacheName),
                member.extracting(name..<name + start).isEqual(to: Self.start)
            else { continue }
            found = ByteSlice(copying: member.extracting(name + start..<member.count))
        }
        return found
    }
}
