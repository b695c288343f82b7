import Bytes
import HTTPSemantics
import Routing
import Storage

/// The form in which one client gets a response: its status, its part of the body, and its framing. Pure.
struct Answer: Sendable {
    private enum Content: Sendable {
        /// The head only.
        case none
        case whole
        case part(Range<Int>)
        /// Not inline, since it is large and rare.
        indirect case parts(MultipartRanges)
        /// 304; it repeats some of these stored fields.
        case notModified(HeadBlock)
        /// An error page of the route, in place of the response's content; not sent to HEAD.
        indirect case page(OwnContent, isSent: Bool)
    }

    let status: Status
    private var content: Content
    /// The length in bytes of the content that is sent or, for HEAD, would be; `nil` if it is not known yet.
    private var length: Int?
    /// The length of the whole representation, for ranges; `nil` if it is not known.
    private let wholeLength: Int?
    /// Whether a response that may have been made for GET answers HEAD.
    private let isForHead: Bool
    let response: StoredResponse

    /// - Parameters:
    ///   - response: the response; if it has only parts, they are all that is wanted (`StoredResponse.hasEverything`).
    ///   - length: the body's length as far as it is known.
    ///   - isPassedThrough: whether the response was made for this very request, including its preconditions and range.
    ///   - maxRanges: the most ranges that a request may have; with more, all are ignored (RFC 9110 §14.2).
    init(
        _ request: borrowing ClientRequest, _ response: StoredResponse, length: Int?, isPassedThrough: Bool,
        maxRanges: Int
    ) {
        let length = response.parts == nil ? length : response.parts?.length
        self.response = response
        wholeLength = length
        isForHead = request.method == .head && !isPassedThrough
        if !isPassedThrough, !request.fields.present.isDisjoint(with: .conditions),
            let decided = Self.partOrNothing(of: response, for: request, length: length, maxRanges: maxRanges)
        {
            (status, content, self.length) = decided
            return
        }
        let stored = response.facts.status
        status = stored
        content = request.method == .head || stored.forbidsContent ? .none : .whole
        // Trailers need chunks (RFC 9112 §7.1.2). Few responses have trailers, so the client's `TE` is checked last.
        let sendsTrailers =
            response.trailers != nil && response.parts == nil && request.method != .head && request.acceptsTrailers
        self.length = stored.forbidsContent || sendsTrailers ? nil : length
    }

    /// The answer to a plain hit. Handles fewer cases than the general way, and costs less.
    /// - Parameters:
    ///   - length: of the complete body.
    ///   - fields: of the request, a GET with none of the fields `notOfPlainHits`.
    /// - Returns: `nil` if a `Transaction` must decide: several ranges, or a range that is not satisfiable.
    @inline(__always)
    init?(hit response: consuming StoredResponse, length: Int, for fields: FieldView, maxRanges: Int) {
        let content: Content
        if fields.present.isDisjoint(with: Self.conditionsOfHits) {
            content = .whole
        } else if let decided = Self.hitContent(of: response, length: length, for: fields, maxRanges: maxRanges) {
            content = decided
        } else {
            return nil
        }
        self.response = response
        self.content = content
        wholeLength = length
        isForHead = false
        switch content {
        case .part(let range):
            status = .partialContent
            self.length = range.count
        case .notModified:
            status = .notModified
            self.length = nil
        case .whole, .none, .parts, .page:
            status = response.facts.status
            self.length = status.forbidsContent ? nil : length
        }
    }

    /// Request fields with which a plain hit may be less than the whole representation.
    private static let conditionsOfHits = FieldSet(.ifNoneMatch) | .ifModifiedSince | .range

    @inline(never) // Rare: kept out of the code of plain hits.
    private static func hitContent(
        of response: StoredResponse, length: Int, for fields: FieldView, maxRanges: Int
    ) -> Content? {
        if ClientConditions.apply(to: fields) {
            let storedHead = response.head
            if ClientConditions.evaluate(fields, stored: storedHead.view, facts: response.facts) == .notModified {
                return .notModified(storedHead)
            }
        }
        guard fields.contains(.range), response.facts.status == .ok else { return .whole }
        guard maxRanges > 0, let range = RangeRequest.single(fields, length: length) else { return nil }
        return .part(range)
    }

    /// The result of the request's preconditions and range (RFC 9110 §13, §14); `nil`: the whole.
    private static func partOrNothing(
        of response: StoredResponse, for request: ClientRequest, length: Int?, maxRanges: Int
    ) -> (Status, Content, Int?)? {
        let (requestFields, storedHead) = (request.fields, response.head)
        if ClientConditions.evaluate(requestFields.view, stored: storedHead.view, facts: response.facts) == .notModified
        {
            return (.notModified, .notModified(storedHead), nil)
        }
        guard let range = RangeRequest(requestFields.view, method: request.method),
            RangeCondition.holds(requestFields.view, stored: storedHead.view, facts: response.facts)
        else { return nil }
        if response.facts.status == .ok, let length, range.specs.count <= maxRanges {
            switch range.resolve(length: length) {
            case .whole:
                break
            case .multiple where !response.isAllThere:
                // Several parts in the requested order cannot be sent while the bytes still arrive.
                break
            case .single(let part):
                return (.partialContent, .part(part), part.count)
            case .multiple(let parts):
                let multipart = MultipartRanges(
                    parts, of: length, boundary: makeBoundary(), contentType: storedHead.view.contentType)
                return (.partialContent, .parts(multipart), multipart.contentLength)
            case .unsatisfiable:
                return (.rangeNotSatisfiable, .none, 0)
            }
        }
        // A part of a representation of unknown length.
        if length == nil, response.parts != nil, maxRanges > 0, range.specs.count == 1,
            case .between(let first, let last) = range.specs[0]
        {
            return (.partialContent, .part(first..<last + 1), last + 1 - first)
        }
        return nil
    }

    /// Letters and digits that occur in a body only by an extremely unlikely coincidence.
    private static func makeBoundary() -> ByteSlice {
        let buffer = ByteBuffer(capacity: 32)
        buffer.append(hexadecimal: .random(in: .min ... .max))
        buffer.append(hexadecimal: .random(in: .min ... .max))
        return buffer.copied()
    }

    /// This answer with the route's error page for its status, if there is one, as its content. The body is not read.
    @inline(__always)
    consuming func withErrorPage(of route: Route, to method: Method) -> Answer {
        if status.code >= 400 { addErrorPage(of: route, to: method) }
        return self
    }

    @inline(never) // Rare.
    private mutating func addErrorPage(of route: Route, to method: Method) {
        guard let page = route.rules?.errorPage(for: status) else { return }
        content = .page(page, isSent: method != .head)
        length = page.bytes.count
    }

    // MARK: - The body

    /// The part of the complete body that a plain hit sends.
    var hitPart: Range<Int> {
        switch content {
        case .whole: 0..<(wholeLength ?? 0)
        case .part(let range): range
        case .none, .notModified, .parts, .page: 0..<0
        }
    }

    /// The sources from which a delivery reads.
    func sources() -> Delivery.Sources {
        if case .page(let page, let isSent) = content { return .one(isSent ? .all(of: page.bytes) : .none) }
        if let parts = response.parts { return sources(from: parts) }
        if case .whole = content, response.isPacked, length != nil { return .packed(response) }
        return .one(source())
    }

    private func source() -> Delivery.Source {
        guard let pieces = response.pieces, let bodyLength = response.bodyLength, length != nil else {
            let part: Range<Int>?
            switch content {
            case .none, .notModified, .parts, .page: return .none
            case .whole: part = nil
            case .part(let range): part = range
            }
            // The beginning is gone only if the body was cut to a window before this reader came, and that closes the
            // fetch to new readers.
            let body = response.bodyToFollow()
            guard let cursor = body.attach() else { return .lost }
            return .arriving(body, cursor, part: part)
        }
        switch content {
        case .none, .notModified, .page: return .none
        case .whole: return .complete(CompleteBodyReader(pieces, part: 0..<bodyLength, of: response.bodies))
        case .part(let part): return .complete(CompleteBodyReader(pieces, part: part, of: response.bodies))
        case .parts(let multipart):
            return .complete(reader(of: multipart) { CompleteBodyReader(pieces, part: $0).allPieces })
        }
    }

    /// The stored parts of the representation, and the one that still arrives.
    private func sources(from parts: StoredParts) -> Delivery.Sources {
        switch content {
        case .none, .notModified, .page: return .one(.none)
        case .whole: return wholeLength.map { parts.sources(of: 0..<$0) } ?? .one(.lost)
        case .part(let part): return parts.sources(of: part)
        case .parts(let multipart): return .one(.complete(reader(of: multipart) { parts.completePieces(of: $0) }))
        }
    }

    /// The parts, each after its head, as one row of pieces.
    private func reader(of multipart: MultipartRanges, _ pieces: (Range<Int>) -> [ByteSlice])
        -> CompleteBodyReader
    {
        var row: [ByteSlice] = []
        for (index, range) in multipart.ranges.enumerated() {
            let head = ByteBuffer(capacity: 256)
            multipart.writePartHead(index, to: head)
            row.append(head.copied())
            row.append(contentsOf: pieces(range))
        }
        let end = ByteBuffer(capacity: 64)
        multipart.writeEnd(to: end)
        row.append(end.copied())
        return CompleteBodyReader(ShortList(row), part: 0..<row.reduce(0) { $0 + $1.count }, of: response.bodies)
    }

    func framing(for version: HTTPVersion) -> Delivery.Framing {
        if length != nil { return .sized }
        switch content {
        case .none, .notModified, .page: return .sized
        case .whole, .part, .parts: break
        }
        return version == .http11 ? .chunked : .untilClose
    }

    // MARK: - The head

    /// The fields that this answer states of its own content, and no rule of the operator may state otherwise.
    var ownFields: FieldSet {
        switch content {
        case .parts, .page: FieldSet(.contentType)
        case .none, .whole, .part, .notModified: []
        }
    }

    /// Writes status line, fields and the empty line.
    func writeHead(
        to buffer: ByteBuffer, provenance: Provenance, at now: Moment, persists: Bool, version: HTTPVersion,
        forwarding: ResponseForwarding
    ) {
        let framing = framing(for: version)
        if case .page(let page, _) = content {
            writeStart(to: buffer, of: page)
        } else {
            writeStart(to: buffer, framing)
        }
        if provenance.sendsAge {
            buffer.appendField("Age", UInt64(response.facts.age(at: now)))
        }
        forwarding.append(to: buffer, provenance, persists: persists && framing != .untilClose, version: version)
        buffer.appendLineEnd()
    }

    /// Writes the head of a plain hit.
    /// - Parameters:
    ///   - age: in seconds, as `timeToLive`.
    @inline(__always)
    func writeHead(
        ofHitAt age: UInt32, timeToLive: UInt32, to buffer: ByteBuffer, persists: Bool, forwarding: ResponseForwarding
    ) {
        writeStart(to: buffer, .sized)
        buffer.appendField("Age", UInt64(age))
        forwarding.appendHit(timeToLive: timeToLive, to: buffer)
        forwarding.appendConnection(to: buffer, persists: persists, version: .http11)
        buffer.appendLineEnd()
    }

    /// The stored field lines, if they are all fields of the representation that this answer to GET has.
    var plainLines: ByteSlice? { status == response.facts.status ? response.fieldLines : nil }

    /// Writes the field lines of a plain hit that are not stored, and the empty line.
    /// - Parameter age: in seconds, as `timeToLive`.
    func writeState(ofHitAt age: UInt32, timeToLive: UInt32, to buffer: ByteBuffer, forwarding: ResponseForwarding) {
        if let length { buffer.appendField("Content-Length", UInt64(length)) }
        buffer.appendField("Age", UInt64(age))
        forwarding.appendHit(timeToLive: timeToLive, to: buffer)
        buffer.appendLineEnd()
    }

    /// Writes status line, stored fields and the field that tells the length.
    @inline(__always)
    private func writeStart(to buffer: ByteBuffer, _ framing: Delivery.Framing) {
        buffer.appendStatusLine(status)
        appendFields(to: buffer)
        switch framing {
        case .sized: if let length { buffer.appendField("Content-Length", UInt64(length)) }
        case .chunked: buffer.appendFraming(.chunked)
        case .untilClose: break
        }
    }

    /// Writes the same of an answer with an error page, with the stored fields that do not describe the content.
    @inline(never) // Rare.
    private func writeStart(to buffer: ByteBuffer, of page: OwnContent) {
        let (head, isMadeHere) = (response.head, status != response.facts.status)
        buffer.appendStatusLine(status)
        buffer.appendFieldsNotOfContent(head.view, dropping: isMadeHere ? Self.notOfUnsatisfiable : [])
        if isMadeHere, status == .rangeNotSatisfiable {
            buffer.appendField("Cache-Control", "no-store")
            buffer.append(.unsatisfied(length: wholeLength ?? 0))
        }
        if !page.bytes.isEmpty { buffer.append(page.typeLine) }
        buffer.appendField("Content-Length", UInt64(page.bytes.count))
    }

    private static let notOfUnsatisfiable =
        (FieldSet(.contentType) | .contentEncoding | .etag | .lastModified | .cacheControl | .expires | .cdnCacheControl)
        .union(StoredFields.ofContent)

    private func appendFields(to buffer: ByteBuffer) {
        guard status != response.facts.status else {
            guard isForHead, response.facts.contains(.describesContent) else {
                return buffer.append(response.fieldLines)
            }
            // The digest would be one of no content (RFC 9530 appendix B.2), and so not the one that GET gets. The
            // other fields are the same as for GET (RFC 9110 §9.3.2).
            return appendFields(except: FieldSet(.contentDigest), to: buffer)
        }
        appendOtherFields(to: buffer)
    }

    private func appendFields(except omitted: FieldSet, to buffer: ByteBuffer) {
        let head = response.head
        buffer.appendFields(head.view, connection: ConnectionOptions(), dropping: omitted)
    }

    /// Appends the fields of an answer with another status than the stored response.
    @inline(never) // Kept out of the code of most hits.
    private func appendOtherFields(to buffer: ByteBuffer) {
        switch content {
        case .notModified(let head):
            let omitted = FieldSet.omittedFromNotModified(head.view)
            buffer.appendFields(head.view, connection: ConnectionOptions(), dropping: omitted)
        case .none:
            // 416: fields about the representation do not describe this answer. Nor does the representation's lifetime:
            // a cache behind this one that does not know ranges would store the answer for the URL (RFC 9111 §3).
            appendFields(except: Self.notOfUnsatisfiable, to: buffer)
            buffer.appendField("Cache-Control", "no-store")
            buffer.append(.unsatisfied(length: wholeLength ?? 0))
        case .whole, .page:
            buffer.append(response.fieldLines)
        case .part(let part):
            // Not the digest of the whole content (RFC 9530 §2). Some pages have a `Content-Range` of their own, in
            // units that only their scripts know; in a 206 it would stand beside ours (RFC 9110 §14.4).
            if response.facts.contains(.describesContent) {
                appendFields(except: StoredFields.ofContent, to: buffer)
            } else {
                buffer.append(response.fieldLines)
            }
            buffer.append(.part(part, of: wholeLength))
        case .parts(let multipart):
            appendFields(except: StoredFields.ofContent.union(.init(.contentType)), to: buffer)
            buffer.appendName("Content-Type")
            multipart.writeContentType(to: buffer)
            buffer.appendLineEnd()
        }
    }
}

extension ByteBuffer {
    /// The field line `Content-Range`.
    func append(_ range: ContentRange) {
        appendName("Content-Range")
        range.write(to: self)
        appendLineEnd()
    }
}

extension FieldView {
    /// A copy of `Content-Type`'s value.
    var contentType: ByteSlice? {
        guard let index = firstIndex(of: .contentType) else { return nil }
        return ByteSlice(copying: value(at: index))
    }
}
