import Bytes
import HTTPSemantics

/// The URLs of a purge whose keys must be searched for in the store, because each URL may have many: all keys below a
/// prefix, or one key for each set of the fields and cookies that the route adds (`KeyPolicy`). One test of a key
/// covers all of these URLs.
struct PurgedURLs: Sendable {
    private let hash: KeyedHash
    /// The purged URLs, as keys that end with the URL.
    private var urls: Set<CacheKey> = []
    /// Scheme, authority and path as in a key. Each also stands for every URL below it.
    private let prefixes: [ByteSlice]

    init(below prefixes: [ByteSlice], hash: KeyedHash) {
        self.prefixes = prefixes
        self.hash = hash
    }

    var isEmpty: Bool { urls.isEmpty && prefixes.isEmpty }

    /// Adds the URL of `key`, without the parts that a route adds behind it.
    mutating func add(urlOf key: CacheKey) { urls.insert(url(of: key)) }

    func contains(_ key: CacheKey) -> Bool {
        !urls.isEmpty && urls.contains(url(of: key)) || prefixes.contains { key.isBelow($0.span) }
    }

    private func url(of key: CacheKey) -> CacheKey {
        let url = key.bytes[0..<key.url.count]
        return CacheKey(hash: hash.hash(url.span), bytes: url)
    }
}
