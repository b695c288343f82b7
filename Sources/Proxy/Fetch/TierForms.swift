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
}

/// A head from the engine that a request may have, as far as the tier can tell.
struct TierOffer {
    let record: TierRecord
    let head: TierHead
    /// In seconds.
    let age: Int64

    /// The head as a fetch gets it: with its age, and with a member of `Cache-Status` that tells of the tier.
    /// - Parameter isHit: whether the response was there, rather than being fetched by another machine.
    func text(isHit: Bool) -> ByteSlice {
        let (head, lines) = (record.head, ByteBuffer(capacity: record.head.count + 80))
        // Without the empty line.
        lines.append(head.span.extracting(first: max(0, head.count - 2)))
        lines.append("Age: ")
        lines.append(decimal: UInt64(max(0, age)))
        lines.appendLineEnd()
        lines.append(TierRecord.statusLine)
        lines.append(isHit ? " hit\r\n\r\n" : " fwd=miss; collapsed\r\n\r\n")
        return lines.copied()
    }
}

/// The use that a request may make of a head from the engine.
enum TierJudgement {
    case good(TierOffer)
    /// It is for requests with other fields: there may be a response for these.
    case otherVariant
    /// Nobody can use it: a purge has removed it, or no machine has written it so.
    case useless
}

extension TierSession {
    /// - Parameters:
    ///   - bytes: the record.
    ///   - token: of its stream.
    ///   - time: when it was written, in the engine's milliseconds.
    ///   - length: of the body if it is complete.
    func judge(_ bytes: ByteSlice, under token: ByteSlice, at time: Int64, length: Int64?) -> TierJudgement {
        let key = request.sentKey.bytes
        let (record, head): (TierRecord, TierHead)
        do throws(TierRefusal) {
            record = try TierRecord(reading: bytes, for: key.span, under: token, seal: engine.seal)
            head = try TierHead(record)
            if let length, let announced = head.announced, announced != length { throw .length }
        } catch {
            noteRefusal(error)
            return .useless
        }
        // Beside the key: a response to a request with other values in the fields that `Vary` names.
        let fields = head.fields
        let vary = request.tierVary(of: fields.view)
        note(vary: vary)
        guard request.tierVariant(under: vary).selecting == record.selecting else { return .otherVariant }
        let url = TierHash(of: request.sentKey.url)
        let wasPurged = shared.history.withLock { history in
            history.mayHavePurged(since: record.asof, of: url) { request.isMeant(by: $0, fields) }
        }
        if wasPurged { return .useless }
        let age = max(0, engineTime - time) + Int64(clamping: record.age)
        return .good(TierOffer(record: record, head: head, age: age / 1000))
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

    /// Whether a purge is one of a response to the request with these fields. The tier has responses under the keys of
    /// their own URLs: those that several URLs share (`SearchVariations`) are known to one program only.
    func isMeant(by purge: TierPurge, _ fields: HeadBlock) -> Bool {
        let (key, value) = (sentKey, purge.value)
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

extension SharedTierState {
    /// How often a request has passed this proxy before, for the decision on its fetch: a request of another machine for a
    /// fetch of this one is a first visit.
    /// - Parameter visits: as its fields tell (`LoopDetection`).
    /// - Throws: the response to a request for a fetch that this machine does not have, or no more.
    func visits(_ visits: Int, of fields: FieldView, _ key: ByteBuffer) throws(SyntheticResponse) -> Int {
        guard let token = TierMark.token(in: fields) else { return visits }
        guard hasAnnounced(token, of: key.copied()) else {
            throw SyntheticResponse(.misdirectedRequest, "This machine does not fetch that response.")
        }
        return 0
    }
}

extension Span<UInt8> {
    /// Whether these are lines of fields, each with a name, a colon and CR LF: the text of a `Vary` is read without any
    /// further check.
    var isFieldLines: Bool {
        var (start, index) = (0, 0)
        var hasName = false
        while index < count {
            switch self[index] {
            case UInt8(ascii: "\r"):
                guard hasName, index + 1 < count, self[index + 1] == UInt8(ascii: "\n") else { return false }
                index += 1
                (start, hasName) = (index + 1, false)
            case UInt8(ascii: ":"): hasName = hasName || index > start
            case 0, UInt8(ascii: "\n"): return false
            default: break
            }
            index += 1
        }
        return start == count
    }
}
