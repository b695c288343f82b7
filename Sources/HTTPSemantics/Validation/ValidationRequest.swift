public import Bytes

/// The preconditions that this cache adds to a request so that the origin may answer 304 (RFC 9111 §4.3.1).
///
/// Add each stored response that could answer the request, then write. Off the hot path; used only where it was
/// created.
public struct ValidationRequest {
    // Created on the first use: for most requests no validators are stored.
    private var tags: ByteBuffer?
    private var lastModified: ByteBuffer?
    private var candidates = 0

    /// Further tags of one client are omitted: it then gets the whole response, even if the origin would have confirmed
    /// a later tag.
    package static let maxClientTags = 64
    /// The most bytes of such tags: room for 64 of the usual length. Each tag is compared with all before it.
    private static let maxClientTagBytes = 4096

    /// Whether the request contains tags of responses that only the client has stored: a 304 may then be for that
    /// client alone (`ClientConditions.isConfirmed`).
    public private(set) var hasClientTags = false

    /// Whether there are no preconditions to write.
    public var isEmpty: Bool { tags == nil && lastModified == nil }

    public init() {}

    /// Adds a complete stored response, fresh or stale. Partial responses only for a range they contain in full
    /// (§4.3.2).
    /// - Parameter byDate: whether the response may be validated by its date, and not only by its tag.
    public mutating func add(_ stored: FieldView, facts: ResponseFacts, byDate: Bool = true) {
        candidates += 1
        if let tag = stored.firstValue(of: .etag), stored.entityTag != nil { append(tag) }
        lastModified = nil
        // §4.3.1: the date only if it identifies one response; unchanged, since the origin may compare it literally. A
        // date does not identify the user of a session's response, and some origins use it even beside a tag.
        if byDate, candidates == 1, facts.contains(.hasLastModified), !facts.contains(.isPersonal),
            let value = stored.firstValue(of: .lastModified)
        {
            lastModified = ByteBuffer(capacity: value.count)
            lastModified?.append(value)
        }
    }

    /// Adds the client's own entity tags, so that a 304 may confirm the client's stored response (§4.3.2). `*` is
    /// omitted: with it the origin would confirm a response that neither side has stored. Without a stored tag no tags
    /// are added: the stored date would then be ignored (RFC 9110 §13.1.3). The client's own date is never sent, since
    /// one date cannot stand for two.
    public mutating func merge(client request: FieldView) {
        guard let tags else { return }
        let stored = tags.count
        // The ranges of the client's tags in `tags`.
        var places: [Range<Int>] = []
        var members = ListIterator(request, .ifNoneMatch, quoting: .quotedStrings)
        var (count, bytes) = (0, 0)
        while count < Self.maxClientTags, let member = members.next() {
            guard EntityTag(member) != nil else { continue }
            count += 1
            bytes += member.count
            if bytes > Self.maxClientTagBytes { return }
            if Self.holds(tags.span.extracting(0..<stored), member)
                || places.contains(where: { tags.span.extracting($0).isEqual(to: member) })
            {
                continue
            }
            tags.append(", ")
            places.append(tags.count..<tags.count + member.count)
            tags.append(member)
            hasClientTags = true
        }
    }

    /// Appends the field lines, each with its CRLF. The caller omits the request's own `If-None-Match` and
    /// `If-Modified-Since`.
    public func write(to buffer: ByteBuffer) {
        if let tags {
            buffer.append("If-None-Match: ")
            buffer.append(tags.span)
            buffer.append("\r\n")
        }
        if let lastModified {
            buffer.append("If-Modified-Since: ")
            buffer.append(lastModified.span)
            buffer.append("\r\n")
        }
    }

    private mutating func append(_ tag: Span<UInt8>) {
        let tags = tags ?? ByteBuffer(capacity: 256)
        self.tags = tags
        guard !Self.holds(tags.span, tag) else { return }
        if !tags.isEmpty { tags.append(", ") }
        tags.append(tag)
    }

    private static func holds(_ tags: Span<UInt8>, _ tag: Span<UInt8>) -> Bool {
        var known = MemberIterator(tags, quoting: .quotedStrings)
        while let member = known.next() {
            if member.isEqual(to: tag) { return true }
        }
        return false
    }
}
