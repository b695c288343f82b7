import Bytes
import CNGHTTP2
import Glibc

/// The fields of one response or of trailers, for HPACK. The list is filled, submitted and emptied again and again
/// without allocating, so one list per loop is enough.
///
/// Names and values stand one behind the other in `text`, which moves when it grows: `withPairs` sets the pointers of
/// `pairs`, which have the lengths.
@safe public final class FieldList {
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
        unsafe name.withUnsafeBufferPointer { unsafe copy(lowercasing: $0) }
        unsafe value.withUnsafeBufferPointer { unsafe copy($0) }
        addPair(name.count, value.count)
    }

    public func append(_ name: StaticString, _ value: Span<UInt8>) {
        reserve(name.utf8CodeUnitCount + value.count)
        unsafe copy(UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount))
        unsafe value.withUnsafeBufferPointer { unsafe copy($0) }
        addPair(name.utf8CodeUnitCount, value.count)
    }

    public func append(_ name: StaticString, decimal number: UInt64) {
        reserve(name.utf8CodeUnitCount + 20)
        unsafe copy(UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount))
        var (digits, left) = (1, number / 10)
        while left > 0 { (digits, left) = (digits + 1, left / 10) }
        left = number
        for place in stride(from: used + digits - 1, through: used, by: -1) {
            unsafe text[place] = UInt8(ascii: "0") &+ UInt8(truncatingIfNeeded: left % 10)
            left /= 10
        }
        used += digits
        addPair(name.utf8CodeUnitCount, digits)
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
        reserve(lines.count)
        return unsafe lines.withUnsafeBufferPointer { lines in
            var start = 0
            while start < lines.count, unsafe lines[start] != UInt8(ascii: "\r") {
                guard let colon = unsafe Self.index(of: UInt8(ascii: ":"), in: lines, from: start),
                    let end = unsafe Self.index(of: UInt8(ascii: "\r"), in: lines, from: colon)
                else { return lines.count }
                let name = unsafe UnsafeBufferPointer(rebasing: lines[start..<colon])
                var value = colon + 1
                while value < end, unsafe lines[value] == UInt8(ascii: " ") { value += 1 }
                if unsafe !isOfConnection(name) {
                    unsafe copy(lowercasing: name)
                    unsafe copy(UnsafeBufferPointer(rebasing: lines[value..<end]))
                    addPair(name.count, end - value)
                }
                start = end + 2
            }
            return min(start + 2, lines.count)
        }
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
        var start = unsafe text
        for index in 0..<pairCount {
            unsafe pairs[index].name = unsafe start
            unsafe start += unsafe pairs[index].namelen
            unsafe pairs[index].value = unsafe start
            unsafe start += unsafe pairs[index].valuelen
        }
        return unsafe body(UnsafeBufferPointer(start: pairs, count: pairCount))
    }

    // MARK: Bytes

    private static func index(of byte: UInt8, in bytes: UnsafeBufferPointer<UInt8>, from start: Int) -> Int? {
        guard let base = bytes.baseAddress,
            let found = unsafe memchr(base + start, Int32(byte), bytes.count - start)
        else { return nil }
        return unsafe UnsafeRawPointer(found) - UnsafeRawPointer(base)
    }

    private func isOfConnection(_ name: UnsafeBufferPointer<UInt8>) -> Bool {
        switch name.count {
        case 7, 10, 16, 17:
            let name = unsafe Span(_unsafeElements: name)
            return name.isEqualIgnoringCase(to: "upgrade") || name.isEqualIgnoringCase(to: "connection")
                || name.isEqualIgnoringCase(to: "keep-alive") || name.isEqualIgnoringCase(to: "proxy-connection")
                || name.isEqualIgnoringCase(to: "transfer-encoding")
        default: return false
        }
    }

    private func reserve(_ more: Int) {
        guard used + more > room else { return }
        room = max(2 * room, used + more)
        let grown = UnsafeMutablePointer<UInt8>.allocate(capacity: room)
        unsafe grown.update(from: text, count: used)
        unsafe text.deallocate()
        unsafe text = grown
    }

    /// Room is reserved.
    private func copy(_ bytes: UnsafeBufferPointer<UInt8>) {
        guard let base = bytes.baseAddress else { return }
        unsafe (text + used).update(from: base, count: bytes.count)
        used += bytes.count
    }

    /// Room is reserved.
    private func copy(lowercasing bytes: UnsafeBufferPointer<UInt8>) {
        guard let start = bytes.baseAddress else { return }
        let (source, place) = unsafe (UnsafeRawPointer(start), UnsafeMutableRawPointer(text + used))
        let count = bytes.count
        if count >= 8 {
            // The last word may overlap the word before it.
            for index in stride(from: 0, to: count, by: 8) {
                let index = min(index, count - 8)
                let word = unsafe source.loadUnaligned(fromByteOffset: index, as: UInt64.self)
                unsafe place.storeBytes(of: Self.lowercased(word), toByteOffset: index, as: UInt64.self)
            }
        } else {
            for index in 0..<count {
                let byte = unsafe source.load(fromByteOffset: index, as: UInt8.self)
                let lower = byte &- UInt8(ascii: "A") < 26 ? byte | 0x20 : byte
                unsafe place.storeBytes(of: lower, toByteOffset: index, as: UInt8.self)
            }
        }
        used += bytes.count
    }

    /// Eight bytes, of which the letters A to Z become a to z.
    private static func lowercased(_ word: UInt64) -> UInt64 {
        let each: UInt64 = 0x0101_0101_0101_0101
        // Without its highest bit, no byte carries into the next.
        let low = word & (each &* 0x7F)
        // The highest bit of a byte says whether it is at least A, or beyond Z.
        let isLetter = (low &+ each &* (0x80 - 0x41)) & ~(low &+ each &* (0x7F - 0x5A)) & ~word & (each &* 0x80)
        return word | isLetter >> 2
    }

    private func addPair(_ name: Int, _ value: Int) {
        if pairCount == pairRoom {
            pairRoom *= 2
            let grown = UnsafeMutablePointer<nghttp2_nv>.allocate(capacity: pairRoom)
            unsafe grown.update(from: pairs, count: pairCount)
            unsafe pairs.deallocate()
            unsafe pairs = grown
        }
        unsafe pairs[pairCount] = nghttp2_nv(
            name: nil, value: nil, namelen: name, valuelen: value, flags: UInt8(NGHTTP2_NV_FLAG_NONE.rawValue))
        pairCount += 1
    }
}
