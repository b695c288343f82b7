import Bytes
import CNGHTTP2
import Glibc

/// The fields of one response or of trailers, for HPACK. The list is filled, submitted and emptied again and again
/// without allocating, so one list per loop is enough.
///
/// The pointers of `pairs` are into `text`; `reserve`, which moves the text, moves them, too.
@safe public final class FieldList {
    /// So many bytes behind the used ones may be read and written: names are examined in words.
    private static let slack = 8

    // No checks of exclusive access at run time: no call is made while one of these changes.
    @exclusivity(unchecked) private var text = UnsafeMutablePointer<UInt8>.allocate(capacity: 4096)
    private var room = 4096
    private var used = 0
    @exclusivity(unchecked) private var pairs = UnsafeMutablePointer<nghttp2_nv>.allocate(capacity: 64)
    private var pairRoom = 64
    /// Not public: the compiler then knows all accesses, and checks none of them.
    private var pairCount = 0

    public init() {}

    deinit {
        unsafe text.deallocate()
        unsafe pairs.deallocate()
    }

    /// The number of fields.
    public var count: Int { pairCount }
    public var isEmpty: Bool { pairCount == 0 }

    public func removeAll() { (used, pairCount) = (0, 0) }

    /// Adds a field; its name is written in lower case (RFC 9113 §8.2.1).
    public func append(_ name: Span<UInt8>, _ value: Span<UInt8>) {
        reserve(name.count + value.count)
        let start = used
        unsafe name.withUnsafeBufferPointer { unsafe copy($0) }
        let end = used
        unsafe value.withUnsafeBufferPointer { unsafe copy($0) }
        lowercase(start..<end)
        addPair(start, name.count, end, value.count)
    }

    public func append(_ name: StaticString, _ value: Span<UInt8>) {
        reserve(name.utf8CodeUnitCount + value.count)
        let start = used
        unsafe copy(UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount))
        let end = used
        unsafe value.withUnsafeBufferPointer { unsafe copy($0) }
        addPair(start, end - start, end, value.count)
    }

    public func append(_ name: StaticString, decimal number: UInt64) {
        reserve(name.utf8CodeUnitCount + 20)
        let start = used
        unsafe copy(UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount))
        let end = used
        var (digits, left) = (1, number / 10)
        while left > 0 { (digits, left) = (digits + 1, left / 10) }
        left = number
        for place in stride(from: end + digits - 1, through: end, by: -1) {
            unsafe text[place] = UInt8(ascii: "0") &+ UInt8(truncatingIfNeeded: left % 10)
            left /= 10
        }
        used += digits
        addPair(start, end - start, end, digits)
    }

    /// Adds the status and the fields of a head of HTTP/1.1 (RFC 9113 §8.3.2).
    /// - Parameter head: well-formed, with its empty line.
    /// - Returns: its length.
    @discardableResult
    public func append(head: Span<UInt8>) -> Int {
        // Behind `HTTP/1.1 `.
        append(":status", head.extracting(9..<12))
        var start = 12
        while start < head.count, head[start] != UInt8(ascii: "\n") { start += 1 }
        guard start < head.count else { return start }
        return start + 1 + append(lines: head.extracting(start + 1..<head.count))
    }

    /// Adds the field lines of HTTP/1.1 up to the first empty one, but for those of the connection (RFC 9113 §8.2.2).
    /// - Parameter lines: well-formed, each with its CRLF.
    /// - Returns: the bytes up to the end, with that of an empty line.
    @discardableResult
    public func append(lines: Span<UInt8>) -> Int {
        let first = used
        reserve(lines.count)
        unsafe lines.withUnsafeBufferPointer { unsafe copy($0) }
        // The lines are examined, and their names written in lower case, where they now stand.
        var start = first
        while start < used, unsafe text[start] != UInt8(ascii: "\r") {
            let colon = lowercase(from: start)
            guard colon < used, let end = index(of: UInt8(ascii: "\r"), from: colon) else { return lines.count }
            var value = colon + 1
            while value < end, unsafe text[value] == UInt8(ascii: " ") { value += 1 }
            if !isOfConnection(start..<colon) { addPair(start, colon - start, value, end - value) }
            start = end + 2
        }
        return min(start + 2 - first, lines.count)
    }

    /// Calls `body` with each name and value.
    func forEach(_ body: (Span<UInt8>, Span<UInt8>) -> Void) {
        unsafe withPairs { pairs in
            for index in 0..<pairs.count {
                let pair = unsafe pairs[index]
                // Both outlive the call.
                unsafe body(
                    Span(_unsafeStart: pair.name, count: pair.namelen),
                    Span(_unsafeStart: pair.value, count: pair.valuelen))
            }
        }
    }

    /// The pairs are valid only during the call; nghttp2 copies them, and reads through their pointers only.
    func withPairs<Result>(_ body: (UnsafeBufferPointer<nghttp2_nv>) -> Result) -> Result {
        unsafe body(UnsafeBufferPointer(start: pairs, count: pairCount))
    }

    // MARK: Bytes

    private func index(of byte: UInt8, from start: Int) -> Int? {
        guard let found = unsafe memchr(text + start, Int32(byte), used - start) else { return nil }
        return unsafe UnsafeRawPointer(found) - UnsafeRawPointer(text)
    }

    /// - Parameter name: in lower case.
    private func isOfConnection(_ name: Range<Int>) -> Bool {
        switch name.count {
        case 7, 10, 16, 17:
            // The list has the bytes.
            let name = unsafe Span(_unsafeStart: UnsafePointer(text + name.lowerBound), count: name.count)
            return name.isEqual(to: "upgrade") || name.isEqual(to: "connection") || name.isEqual(to: "keep-alive")
                || name.isEqual(to: "proxy-connection") || name.isEqual(to: "transfer-encoding")
        default: return false
        }
    }

    /// Makes room for so many bytes.
    private func reserve(_ more: Int) {
        guard used + more + Self.slack > room else { return }
        room = max(2 * room, used + more + Self.slack)
        let grown = UnsafeMutablePointer<UInt8>.allocate(capacity: room)
        unsafe grown.update(from: text, count: used)
        for index in 0..<pairCount {
            unsafe pairs[index].name = unsafe grown + (pairs[index].name - text)
            unsafe pairs[index].value = unsafe grown + (pairs[index].value - text)
        }
        unsafe text.deallocate()
        unsafe text = grown
    }

    /// Room is reserved.
    private func copy(_ bytes: UnsafeBufferPointer<UInt8>) {
        guard let base = bytes.baseAddress else { return }
        unsafe (text + used).update(from: base, count: bytes.count)
        used += bytes.count
    }

    /// Writes the bytes up to a colon in lower case.
    /// - Returns: the place of the colon; at least `used` if there is none.
    private func lowercase(from start: Int) -> Int {
        var place = start
        while place < used {
            let word = self[word: place]
            let other = word ^ Self.each &* UInt64(UInt8(ascii: ":"))
            // The highest bit of the first byte that is 0, and perhaps of others behind it.
            let zero = (other &- Self.each) & ~other & (Self.each &* 0x80)
            guard zero == 0 else {
                let bits = zero.trailingZeroBitCount & ~7
                lowercase(word, at: place, bits: bits)
                return place + bits / 8
            }
            self[word: place] = Self.lowercased(word)
            place += 8
        }
        return place
    }

    private func lowercase(_ range: Range<Int>) {
        for place in stride(from: range.lowerBound, to: range.upperBound, by: 8) {
            let word = self[word: place]
            let left = range.upperBound - place
            if left >= 8 {
                self[word: place] = Self.lowercased(word)
            } else {
                lowercase(word, at: place, bits: 8 * left)
            }
        }
    }

    /// Writes the first bytes of a word, fewer than eight, in lower case, and leaves the others.
    private func lowercase(_ word: UInt64, at place: Int, bits: Int) {
        let mask = (UInt64(1) << UInt64(bits)) &- 1
        self[word: place] = Self.lowercased(word) & mask | word & ~mask
    }

    /// Eight bytes, the first of them the lowest; bytes behind the used ones are in `slack`.
    private subscript(word place: Int) -> UInt64 {
        get { UInt64(littleEndian: unsafe UnsafeRawPointer(text + place).loadUnaligned(as: UInt64.self)) }
        set {
            unsafe UnsafeMutableRawPointer(text + place).storeBytes(of: newValue.littleEndian, as: UInt64.self)
        }
    }

    private static let each: UInt64 = 0x0101_0101_0101_0101

    /// Eight bytes, of which the letters A to Z become a to z.
    private static func lowercased(_ word: UInt64) -> UInt64 {
        // Without its highest bit, no byte carries into the next.
        let low = word & (each &* 0x7F)
        // The highest bit of a byte says whether it is at least A, or beyond Z.
        let isLetter = (low &+ each &* (0x80 - 0x41)) & ~(low &+ each &* (0x7F - 0x5A)) & ~word & (each &* 0x80)
        return word | isLetter >> 2
    }

    /// Adds a field whose name and value begin at these places of the text.
    @inline(__always)
    private func addPair(_ name: Int, _ nameCount: Int, _ value: Int, _ valueCount: Int) {
        if pairCount == pairRoom { makeRoomForPairs() }
        unsafe pairs[pairCount] = nghttp2_nv(
            name: text + name, value: text + value, namelen: nameCount, valuelen: valueCount,
            flags: UInt8(NGHTTP2_NV_FLAG_NONE.rawValue))
        pairCount += 1
    }

    private func makeRoomForPairs() {
        pairRoom *= 2
        let grown = UnsafeMutablePointer<nghttp2_nv>.allocate(capacity: pairRoom)
        unsafe grown.update(from: pairs, count: pairCount)
        unsafe pairs.deallocate()
        unsafe pairs = grown
    }
}
