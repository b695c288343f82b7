import Bytes

/// Hosts and wildcards, found by the host of a request in one pass over its bytes, however many there are. Made once,
/// with the settings; an object, so that nothing of it is copied for a request.
///
/// The pass goes from the last byte to the first: at each dot the hash of all that follows is there, which is what a
/// wildcard is found by, and at the end the hash of the whole.
final class HostIndex: Sendable {
    /// A list that is no longer than this is walked, which is cheaper then.
    static let mostWalked = 8

    fileprivate let entries: ByteIndex
    fileprivate let isWildcard: [Bool]
    fileprivate let hasWildcards: Bool

    /// - Parameter patterns: each once; their places are their numbers.
    init(_ patterns: [HostPattern]) {
        entries = ByteIndex(
            patterns.map { pattern in
                let bytes = pattern.lowercased
                return (RunningHash.of(bytes.reversed()), bytes)
            })
        isWildcard = patterns.map(\.isWildcard)
        hasWildcards = isWildcard.contains(true)
    }

    /// Whether one of them stands for `host`. As `HostPattern.matches`.
    func contains(_ host: Span<UInt8>) -> Bool {
        var matches = HostMatches(host)
        return matches.next(in: self) != nil
    }

    /// For tests: the most places in its table that are looked at for one name.
    var longestLook: Int { entries.longestLook }
}

/// Those of an index that stand for a host: wildcards, the shortest first, then the host itself.
struct HostMatches: ~Escapable {
    private let host: Span<UInt8>
    /// Bytes before the ones whose hash this is.
    private var rest: Int
    private var hash = RunningHash()

    @_lifetime(copy host)
    init(_ host: Span<UInt8>) {
        self.host = host
        rest = host.count
    }

    /// The number of the next one.
    mutating func next(in index: HostIndex) -> Int? {
        while rest > 0 {
            rest -= 1
            let byte = host[rest].lowercasedASCII
            hash.add(byte)
            // A wildcard stands for names below its own, which have something before the dot.
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
