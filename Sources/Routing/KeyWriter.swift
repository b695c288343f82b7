public import Bytes
public import HTTPSemantics
public import Storage

/// Writes the primary cache key of a request (RFC 9111 §2): scheme, host, target, and the fields and cookies of the
/// route's `KeyPolicy`. One per loop; every request reuses the buffer.
///
/// Two requests have the same key exactly if they have the same bytes here. The bytes that separate the parts do not
/// occur within a part.
public final class KeyWriter {
    /// The key written last, until the next call.
    public let bytes = ByteBuffer(capacity: 512)
    private let spare = ByteBuffer(capacity: 512)
    private let hash: KeyedHash
    /// The hash of the key written last; `nil` until `hashed()` computes it.
    private var hashOfBytes: UInt64?
    private let parameters = QueryParameters()
    /// The authority of the key in `bytes`, as it was sent, and its scheme.
    private let lastAuthority = ByteBuffer(capacity: 64)
    private var lastScheme = ClientScheme.http
    /// Bytes of the key before its path; 0 if it was not written from a request.
    private var startLength = 0
    /// The key that `key()` returned last.
    private var latest: CacheKey?

    /// - Parameter hash: the hash of all keys that are compared with these.
    public init(hash: KeyedHash) { self.hash = hash }

    /// Writes the key into `bytes`.
    @inlinable
    public func write(_ head: RequestHead, _ fields: FieldView, _ scheme: ClientScheme, _ route: Route) {
        guard route.hasPlainKey else { return write(head, fields, scheme, route.key) }
        bytes.append(writeStart(head, fields, scheme))
    }

    /// Writes the key under `policy` into `bytes`.
    public func write(_ head: RequestHead, _ fields: FieldView, _ scheme: ClientScheme, _ policy: KeyPolicy) {
        write(head, fields, scheme, policy, as: fields)
    }

    /// - Parameter request: supplies the fields and cookies of the key, if `head` and `fields` come from a URL alone.
    func write(
        _ head: RequestHead, _ fields: FieldView, _ scheme: ClientScheme, _ policy: KeyPolicy, as request: FieldView
    ) {
        policy.append(pathAndQuery: writeStart(head, fields, scheme), of: request, to: bytes)
    }

    /// Writes the part of the key before path and query.
    /// - Returns: path and query.
    @usableFromInline
    @_lifetime(copy fields)
    func writeStart(_ head: RequestHead, _ fields: FieldView, _ scheme: ClientScheme) -> Span<UInt8> {
        let buffer = bytes
        hashOfBytes = nil
        let authority = fields.bytes.extracting(head.authority.range)
        // Most requests are for the same host as the previous one, whose part of the key is in the buffer already.
        if startLength > 0, lastScheme == scheme, isLastAuthority(authority) {
            buffer.truncate(to: startLength)
        } else {
            buffer.removeAll()
            buffer.append(scheme.name)
            buffer.append(UInt8(ascii: " "))
            buffer.appendKeyHost(authority, head.host, defaultPort: scheme.defaultPort)
            buffer.append(UInt8(ascii: " "))
            startLength = buffer.count
            lastScheme = scheme
            lastAuthority.removeAll()
            lastAuthority.append(authority)
        }
        let target = head.target
        // An absolute target may come without a path, which means the root (RFC 9110 §4.2.3).
        if target.path.count == 0 { buffer.append(UInt8(ascii: "/")) }
        let end = target.hasQuery ? Int(target.query.upper) : Int(target.path.upper)
        return fields.bytes.extracting(Int(target.path.lower)..<end)
    }

    /// Rewrites the key written last, which is for the URL as sent, to the key under `variation`. Allocates nothing.
    public func rewrite(under variation: SearchVariation) {
        let (bytes, spare) = (bytes, spare)
        spare.removeAll()
        SearchKey.append(bytes.span, under: variation, to: spare, using: parameters)
        forget()
        bytes.append(spare.span)
    }

    /// The key under `variation` of the URL of `key`, which is for the URL as sent.
    public func key(_ key: CacheKey, under variation: SearchVariation) -> CacheKey {
        let (buffer, sent) = (bytes, key.bytes)
        forget()
        SearchKey.append(sent.span, under: variation, to: buffer, using: parameters)
        return self.key()
    }

    private func forget() {
        hashOfBytes = nil
        startLength = 0
        bytes.removeAll()
    }

    private func isLastAuthority(_ authority: Span<UInt8>) -> Bool {
        let last = lastAuthority
        return last.span.isEqual(to: authority)
    }

    private func hashed() -> UInt64 {
        if let hashOfBytes { return hashOfBytes }
        let buffer = bytes
        let hash = hash.hash(buffer.span)
        hashOfBytes = hash
        return hash
    }

    /// The response that `store` has under the key written last for a request with `fields`.
    public func response(in store: ResponseStore, matching fields: FieldView) -> StoredResponse? {
        let key = bytes
        return store.response(hash: hashed(), key: key.span, matching: fields)
    }

    /// The key written last, as a value to keep. Consecutive requests with the same key share one object.
    public func key() -> CacheKey {
        let buffer = bytes
        if let latest {
            let bytes = latest.bytes
            if bytes.span.isEqual(to: buffer.span) { return latest }
        }
        let key = CacheKey(hash: hashed(), bytes: buffer.copied())
        latest = key
        return key
    }
}
