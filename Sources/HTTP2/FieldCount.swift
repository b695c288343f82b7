/// The size of one field section as its lines come out of HPACK, of which a peer may name one of 4 KB by a single byte
/// (the indexed-field bomb). Counted as RFC 9113 §10.5.1 has it, each crumb of a `Cookie` by itself.
package struct FieldCount: Sendable {
    package let mostLines: Int
    package let mostBytes: Int
    package private(set) var lines = 0
    package private(set) var bytes = 0

    package init(mostLines: Int, mostBytes: Int) {
        (self.mostLines, self.mostBytes) = (mostLines, mostBytes)
    }

    /// The bytes that RFC 9113 §6.5.2 adds to each line.
    private static let ofLine = 32

    /// Counts one line.
    /// - Returns: false if the section is too large.
    package mutating func admit(name: Int, value: Int) -> Bool {
        lines += 1
        bytes += name + value + Self.ofLine
        return lines <= mostLines && bytes <= mostBytes
    }
}
