/// A field line as a test names it.
typealias Field = (name: String, value: String)

/// Writes HPACK as it is told (RFC 7541), well-formed fields or not, without Huffman's code.
struct FieldBlock: Sendable {
    private(set) var bytes: [UInt8] = []

    /// The first index of the dynamic table (RFC 7541 §2.3.3).
    static let newest = 62

    init() {}

    init(_ fields: [Field]) {
        for field in fields { add(field.name, field.value) }
    }

    /// A literal; `isKept`: which goes into the dynamic table.
    mutating func add(_ name: String, _ value: String, isKept: Bool = false) {
        bytes.append(isKept ? 0x40 : 0x00)
        add(string: Array(name.utf8))
        add(string: Array(value.utf8))
    }

    /// A line of the tables by its number.
    mutating func refer(to index: Int, times: Int = 1) {
        let one = Self.integer(index, prefix: 7, first: 0x80)
        if one.count == 1 {
            bytes += [UInt8](repeating: one[0], count: times)
        } else {
            for _ in 0..<times { bytes += one }
        }
    }

    /// A literal whose name is a line of the tables.
    mutating func add(nameAt index: Int, _ value: String, isKept: Bool = false) {
        bytes += Self.integer(index, prefix: isKept ? 6 : 4, first: isKept ? 0x40 : 0x00)
        add(string: Array(value.utf8))
    }

    /// RFC 7541 §6.3.
    mutating func setTableSize(_ size: Int) { bytes += Self.integer(size, prefix: 5, first: 0x20) }

    private mutating func add(string: [UInt8]) {
        bytes += Self.integer(string.count, prefix: 7, first: 0x00)
        bytes += string
    }

    /// RFC 7541 §5.1.
    private static func integer(_ number: Int, prefix: Int, first: UInt8) -> [UInt8] {
        let most = 1 << prefix - 1
        guard number >= most else { return [first | UInt8(number)] }
        var (bytes, rest) = ([first | UInt8(most)], number - most)
        while rest >= 128 {
            bytes.append(UInt8(rest & 0x7F | 0x80))
            rest >>= 7
        }
        return bytes + [UInt8(rest)]
    }

    // MARK: Requests

    /// For a request of HTTP/1.1 for the same resource.
    static let host = "Host: test.example"

    /// The fields of a request for `path`.
    static func fields(
        _ method: String = "GET", _ path: String, _ fields: [Field] = [], authority: String = "test.example"
    ) -> [Field] {
        [(":method", method), (":scheme", "http"), (":authority", authority), (":path", path)] + fields
    }

    static func request(_ method: String = "GET", _ path: String, _ fields: [Field] = []) -> FieldBlock {
        FieldBlock(Self.fields(method, path, fields))
    }
}
