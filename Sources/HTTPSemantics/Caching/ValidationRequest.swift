public import Bytes

/// The preconditions we put on a request so that the origin may answer 304 (RFC 9111 §4.3.1).
///
/// Add each stored response that could answer the request, then write. Off the hot path; lives where it was made.
public struct ValidationRequest {
    // Made when there is something to hold: most requests have nothing stored to ask about.
    private var tags: ByteBuffer?
    private var lastModified: ByteBuffer?
    private var candidates = 0

    /// More tags than this of one client are left out: it gets the whole where the origin would have confirmed a later
    /// one.
    package static let maxClientTags = 64
    /// Nor more than this many bytes of them: room for 64 of the usual length. Each is compared with all before it.
    private static let maxClientTagBytes = 4096

    /// Whether tags are asked about that only the client has: a 304 may then be for it alone
    /// (`ClientConditions.isConfirmed`).
    public private(set) var hasClientTags = false

    /// Whether there is nothing to write.
    public var isEmpty: Bool { tags == nil && lastModified == nil }

    public init() {}

    /// A complete stored response, fresh or stale. Partial ones only for a range they hold in full (§4.3.2).
    /// - Parameter byDate: whether it may be confirmed by its date, and not only by its tag.
    public mutating func add(_ stored: FieldView, facts: ResponseFacts, byDate: Bool = true) {
        candidates += 1
        if let tag = stored.firstValue(of: .etag), stored.entityTag != nil { append(tag) }
        lastModified = nil
        // §4.3.1: the date only where it names one response; as it stands, since the origin may compare it literally.
        // A date says nothing of whose page it is, and there are origins that go by it beside a tag.
        if byDate, candidates == 1, facts.contains(.hasLastModified), !facts.contains(.isOfSession),
            let value = stored.firstValue(of: .lastModified)
        {
            lastModified = ByteBuffer(capacity: value.count)
            lastModified?.append(value)
        }
    }

    /// Adds the client's own entity tags, so that a 304 may be for what the client has (§4.3.2). Its `*` is left out:
    /// with it the origin would confirm what nobody has. Nothing is added where we have no tag ourselves: our date
    /// would then no longer count (RFC 9110 §13.1.3). The client's own date is never asked about, since one date cannot
    /// stand for two.
    public mutating func merge(client request: FieldView) {
        guard let tags else { return }
        let stored = tags.count
        // Of the client's among them.
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

    /// Appends the field lines, each with its CRLF. The request's own `If-None-Match` and `If-Modified-Since` must
    /// be left out.
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
