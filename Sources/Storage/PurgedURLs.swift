public import Bytes
public import HTTPSemantics

/// The URLs of one purge whose keys must be searched for in the store, because each URL may have many: all keys below a
/// prefix, or one key for each set of the fields and cookies that the route adds (`KeyPolicy`).
public struct PurgedURLs: Sendable {
    /// URLs as in a key: scheme, authority, path and query. Each stands for itself only.
    fileprivate var urls: [ByteSlice] = []
    /// Scheme, authority and path as in a key. Each also stands for every URL below it.
    fileprivate var prefixes: [ByteSlice]
    /// Whether all URLs are purged.
    fileprivate let isEverything: Bool

    /// Begins with the URLs of `prefixes` and all below them.
    public init(below prefixes: [ByteSlice] = []) {
        self.prefixes = prefixes
        isEverything = false
    }

    private init(isEverything: Bool) {
        prefixes = []
        self.isEverything = isEverything
    }

    /// All URLs.
    public static let everything = PurgedURLs(isEverything: true)

    /// Whether no URL is purged.
    public var isEmpty: Bool { urls.isEmpty && prefixes.isEmpty && !isEverything }

    /// Adds the URL `prefix` and all below it.
    public mutating func add(below prefix: ByteSlice) { prefixes.append(prefix) }

    /// Adds the URL of `key`, without the parts that a route adds behind it.
    public mutating func add(urlOf key: CacheKey) { urls.append(key.bytes[0..<key.url.count]) }
}

/// Finds the purges that a key is one of, in a time that does not depend on how many URLs they have.
///
/// One pass over the key's URL finds them: at the end of each segment, by the hash of the bytes up to there, as
/// `CacheKey.isBelow` defines it.
public struct PurgeIndex: Sendable {
    /// Each URL of a purge, once.
    private let index: ByteIndex
    /// For each URL, the numbers of the purges that have it.
    private let purges: [(asURL: [Int], asPrefix: [Int])]
    /// The numbers of the purges of all URLs.
    private let ofEverything: [Int]
    /// Bytes of the longest URL.
    private let longest: Int

    /// - Parameter all: the purges, in the order of their numbers, from 0.
    public init(_ all: [PurgedURLs]) {
        var places: [ByteSlice: Int] = [:]
        var entries: [(hash: UInt64, bytes: [UInt8])] = []
        var purges: [(asURL: [Int], asPrefix: [Int])] = []
        func place(of url: ByteSlice) -> Int {
            if let place = places[url] { return place }
            let span = url.span
            let bytes = span.indices.map { span[$0] }
            places[url] = purges.count
            entries.append((RunningHash.of(bytes), bytes))
            purges.append(([], []))
            return purges.count - 1
        }
        for (number, purge) in all.enumerated() {
            for url in purge.urls { purges[place(of: url)].asURL.append(number) }
            for prefix in purge.prefixes { purges[place(of: prefix)].asPrefix.append(number) }
        }
        index = ByteIndex(entries)
        self.purges = purges
        ofEverything = all.indices.filter { all[$0].isEverything }
        longest = entries.map(\.bytes.count).max() ?? 0
    }

    /// Whether any purge has `key`.
    public func contains(_ key: CacheKey) -> Bool {
        var isFound = false
        find(key) { _ in isFound = true }
        return isFound
    }

    /// Calls `found` with the number of each purge that has `key`; more than once if several of its URLs do.
    public func find(_ key: CacheKey, _ found: (Int) -> Void) {
        for number in ofEverything { found(number) }
        guard !index.isEmpty else { return }
        let (slice, slash) = (key.bytes, UInt8(ascii: "/"))
        let bytes = slice.span
        var hash = RunningHash()
        var endsSegment = false
        for end in 0...min(bytes.count, longest) {
            // A route's additions follow a byte 0, as does nothing else.
            let next = end < bytes.count ? bytes[end] : 0
            switch next {
            case 0, slash, UInt8(ascii: "?"), UInt8(ascii: " "):
                look(for: bytes.extracting(0..<end), hash, isWhole: next == 0, found)
            default:
                if endsSegment { look(for: bytes.extracting(0..<end), hash, isWhole: false, found) }
            }
            guard next != 0 else { return }
            hash.add(next)
            endsSegment = next == slash
        }
    }

    /// - Parameter isWhole: whether `beginning` is the key's whole URL.
    private func look(for beginning: Span<UInt8>, _ hash: RunningHash, isWhole: Bool, _ found: (Int) -> Void) {
        var look = index.look(for: hash.value)
        while let place = index.next(&look) {
            guard index.isEqual(place, to: beginning) else { continue }
            for number in purges[place].asPrefix { found(number) }
            if isWhole { for number in purges[place].asURL { found(number) } }
            return
        }
    }
}
