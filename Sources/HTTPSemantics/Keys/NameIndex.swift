import Bytes

/// An operator's list of names of cookies or query parameters, and of prefixes of such names: matched in one pass over
/// a name, for any number of entries. Built once, with the settings; matching does not allocate. An object, so that a
/// request copies none of it.
final class NameIndex: Sendable, Equatable {
    /// How names are compared.
    enum Reading: Sendable {
        /// Byte for byte.
        case exactly
        /// As the most lenient origin reads them (`LenientName`).
        case leniently
    }

    /// A list up to this length is walked, which is cheaper.
    private static let mostWalked = 8

    private let reading: Reading
    private let names: ByteIndex
    private let beginnings: ByteIndex
    /// Bytes of the longest prefix.
    private let longestBeginning: Int
    /// Whether the empty prefix is listed, so that every name matches.
    private let takesAll: Bool

    /// `nil` for a list so short that it is walked.
    /// - Parameter list: with `isPrefix`, the entry stands for all names that begin with `name`.
    init?(_ list: [(name: ByteSlice, isPrefix: Bool)], reading: Reading) {
        guard list.count > Self.mostWalked else { return nil }
        self.reading = reading
        func index(ofBeginnings isPrefix: Bool) -> (entries: ByteIndex, longest: Int, hasEmpty: Bool) {
            let read = list.filter { $0.isPrefix == isPrefix }.map { entry in
                var (bytes, name): ([UInt8], NameReader) = ([], NameReader(entry.name.span, reading))
                while let byte = name.next() { bytes.append(byte) }
                return bytes
            }
            return (
                ByteIndex(read.map { (RunningHash.of($0), $0) }), read.map(\.count).max() ?? 0,
                read.contains { $0.isEmpty }
            )
        }
        names = index(ofBeginnings: false).entries
        let prefixes = index(ofBeginnings: true)
        (beginnings, longestBeginning, takesAll) = (prefixes.entries, prefixes.longest, prefixes.hasEmpty)
    }

    static func == (left: NameIndex, right: NameIndex) -> Bool {
        left === right
            || left.reading == right.reading && left.names == right.names
                && left.beginnings == right.beginnings
    }

    /// Whether `name` is in the list, or begins with one of its prefixes.
    func matches(_ name: Span<UInt8>) -> Bool {
        if takesAll { return true }
        var (hash, count) = (RunningHash(), 0)
        var bytes = NameReader(name, reading)
        while let byte = bytes.next() {
            hash.add(byte)
            count += 1
            if count <= longestBeginning, has(hash, beginning: name, in: beginnings, count) { return true }
        }
        return has(hash, beginning: name, in: names, count)
    }

    /// Whether `entries` contain the first `count` bytes of `name`, as it is read; `hash` is their hash.
    private func has(_ hash: RunningHash, beginning name: Span<UInt8>, in entries: borrowing ByteIndex, _ count: Int)
        -> Bool
    {
        var look = entries.look(for: hash.value)
        search: while let number = entries.next(&look) {
            guard entries.count(of: number) == count else { continue }
            var bytes = NameReader(name, reading)
            for index in 0..<count where bytes.next() != entries.byte(index, of: number) { continue search }
            return true
        }
        return false
    }

    /// For tests: the longest probe in the tables, in slots.
    var longestLook: Int { max(names.longestLook, beginnings.longestLook) }
}

/// The bytes of a name in the form in which they are compared, one at a time.
private struct NameReader: ~Escapable {
    private let name: Span<UInt8>
    private let reading: NameIndex.Reading
    private var index = 0
    private var lenient: LenientName

    @_lifetime(copy name)
    init(_ name: Span<UInt8>, _ reading: NameIndex.Reading) {
        self.name = name
        self.reading = reading
        lenient = LenientName(name)
    }

    mutating func next() -> UInt8? {
        switch reading {
        case .leniently: return lenient.next()
        case .exactly:
            guard index < name.count else { return nil }
            index += 1
            return name[index - 1]
        }
    }
}
