import Bytes

/// Finds the patterns, hosts and wildcards, that match the host of a request, in one pass over the host's bytes for any
/// number of patterns. Made once, with the settings; a class, so that a request copies none of it.
///
/// The pass goes from the last byte to the first. At each dot the hash of the bytes from the dot on finds wildcards; at
/// the end the hash of all bytes finds the host itself.
final class HostIndex: Sendable {
    /// A list of at most this length is searched from first to last, which is cheaper.
    static let mostWalked = 8

    fileprivate let entries: ByteIndex
    fileprivate let isWildcard: [Bool]
    fileprivate let hasWildcards: Bool

    /// - Parameter patterns: without duplicates; the position of a pattern is its number.
    init(_ patterns: [HostPattern]) {
        entries = ByteIndex(
            patterns.map { pattern in
                let bytes = pattern.lowercased
                return (RunningHash.of(bytes.reversed()), bytes)
            })
        isWildcard = patterns.map(\.isWildcard)
        hasWildcards = isWildcard.contains(true)
    }

    /// Whether one of the patterns matches `host`, as `HostPattern.matches` defines it.
    func contains(_ host: Span<UInt8>) -> Bool {
        var matches = HostMatches(host)
        return matches.next(in: self) != nil
    }

    /// For tests: the most slots of the hash table that are examined for one name.
    var longestLook: Int { entries.longestLook }
}

/// The patterns of an index that match a host: wildcards, the shortest first, then the host itself.
struct HostMatches: ~Escapable {
    private let host: Span<UInt8>
    /// The number of bytes in front of the part of the host that `hash` covers.
    private var rest: Int
    private var hash = RunningHash()

    @_lifetime(copy host)
    init(_ host: Span<UInt8>) {
        self.host = host
        rest = host.count
    }

    /// The number of the next matching pattern; `nil` after the last.
    mutating func next(in index: HostIndex) -> Int? {
        while rest > 0 {
            rest -= 1
            let byte = host[rest].lowercasedASCII
            hash.add(byte)
            // A wildcard matches only names below its own, which have at least one byte before the dot.
            let isWhole = rest == 0
            guard isWhole || byte == UInt8(ascii: ".") && index.hasWildcards else { continue }
            var look = index.entries.look(for: hash.value)
            while let number = index.entries.next(&look) {
                if index.isWildcard[number] != isWhole,
                    index.entries.isEqualIgnoringCase(number, to: host.extracting(rest..<host.count))
                {
                    return number
                }
            }
        }
        return nil
    }
}
