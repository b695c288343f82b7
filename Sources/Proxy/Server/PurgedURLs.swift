import Bytes
import HTTPSemantics

/// URLs of a purge whose keys have to be looked for, since each has many: under a prefix, or by the fields and cookies
/// that its route adds (`KeyPolicy`). One look at a key is for all of them.
struct PurgedURLs: Sendable {
    private let hash: KeyedHash
    /// The purged URLs, as keys with nothing behind the URL.
    private var urls: Set<CacheKey> = []
    /// Scheme, authority and path as in a key; with all below.
    private let prefixes: [ByteSlice]

    init(below prefixes: [ByteSlice], hash: KeyedHash) {
        self.prefixes = prefixes
        self.hash = hash
    }

    var isEmpty: Bool { urls.isEmpty && prefixes.isEmpty }

    /// Adds the URL of `key`, whatever a route adds behind it.
    mutating func add(urlOf key: CacheKey) { urls.insert(url(of: key)) }

    func contains(_ key: CacheKey) -> Bool {
        !urls.isEmpty && urls.contains(url(of: key)) || prefixes.contains { key.isBelow($0.span) }
    }

    private func url(of key: CacheKey) -> CacheKey {
        let url = key.bytes[0..<key.url.count]
        return CacheKey(hash: hash.hash(url.span), bytes: url)
    }
}
