/// Scans for the first byte outside a set, eight bytes at a time. The bytes that a field value or a request target may
/// not contain also end it, so one scan finds the end and proves that every byte before it is allowed.
extension Span where Element == UInt8 {
    /// The first index at or after `start` of a byte that no field value contains: CTL except HTAB (RFC 9110 §5.5).
    @inlinable
    public func firstIndexOutsideFieldValue(from start: Int) -> Int? {
        firstIndex(from: start) { word in
            word.bytesNotPrintable(from: 0x20)
        } whose: { byte in
            (byte < 0x20 && byte != 0x09) || byte == 0x7f
        }
    }

    /// The first index at or after `start` of a byte that no token contains. Field names are tokens (RFC 9110 §5.1,
    /// §5.6.2).
    @inlinable
    public func firstIndexOutsideToken(from start: Int) -> Int? {
        firstIndex(from: start) { word in
            ~word.lettersAndHyphens
        } whose: { byte in
            !byte.isToken
        }
    }

    /// The first index at or after `start` of a byte that no field name of HTTP/2 contains: a token without capital
    /// letters (RFC 9113 §8.2.1).
    @inlinable
    public func firstIndexOutsideLowercaseToken(from start: Int) -> Int? {
        firstIndex(from: start) { word in
            // The bit that small letters and hyphens have, and capital letters do not, becomes the top bit.
            ~word.lettersAndHyphens | ~word &<< 2
        } whose: { byte in
            !byte.isToken || (0x41...0x5a).contains(byte)
        }
    }

    /// Whether all bytes are letters, digits or hyphens, as in nearly all field names.
    @inlinable
    public var isPlainName: Bool {
        if hasOnlyLettersAndHyphens { return true }
        for index in 0..<count where !self[index].isPlainInName { return false }
        return true
    }

    /// Whether all bytes are letters or hyphens. False if there are fewer than eight bytes.
    @inlinable
    var hasOnlyLettersAndHyphens: Bool {
        let total = count
        guard total >= 8 else { return false }
        return unsafe withUnsafeBufferPointer { buffer in
            guard let base = unsafe UnsafeRawPointer(buffer.baseAddress) else { return false }
            var index = 0
            while true {
                // At most `total - 8`, so in bounds.
                let word = unsafe base.loadUnaligned(fromByteOffset: index, as: UInt64.self)
                if ~word.lettersAndHyphens & .repeating(0x80) != 0 { return false }
                if index == total &- 8 { return true }
                // The last word may overlap the one before.
                index = Swift.min(index &+ 8, total &- 8)
            }
        }
    }

    /// The first index at or after `start` of a byte that no request target contains: outside printable ASCII, or `#`.
    @inlinable
    public func firstIndexOutsideTarget(from start: Int) -> Int? {
        firstIndex(from: start) { word in
            word.bytesNotPrintable(from: 0x21) | word.bytes(0x23)
        } whose: { byte in
            byte < 0x21 || byte > 0x7e || byte == 0x23
        }
    }

    /// The first index at or after `start` of a byte that no registered name contains, unless as a part of a
    /// percent-encoded one (RFC 3986 §3.2.2).
    @inlinable
    public func firstIndexOutsideRegisteredName(from start: Int) -> Int? {
        firstIndex(from: start) { word in
            ~(word.lettersAndHyphens | word.digitsAndDots)
        } whose: { byte in
            !byte.isInRegisteredName
        }
    }

    /// The first index at or after `start` of a byte that must be escaped between the quotes of a log line: below
    /// `first`, outside printable ASCII, `"` or `\`.
    @inlinable
    public func firstIndexOutsideQuotes(from start: Int, printableFrom first: UInt8) -> Int? {
        firstIndex(from: start) { word in
            word.bytesNotPrintable(from: first) | word.bytes(0x22) | word.bytes(0x5c)
        } whose: { byte in
            byte < first || byte > 0x7e || byte == 0x22 || byte == 0x5c
        }
    }

    /// - Parameters:
    ///   - suspects: marks, by its top bit, each of eight bytes that may be wanted; it may mark too many, but never too
    ///     few.
    ///   - isWanted: decides about one byte.
    @inlinable @inline(__always)
    func firstIndex(from start: Int, _ suspects: (UInt64) -> UInt64, whose isWanted: (UInt8) -> Bool) -> Int? {
        let total = count
        precondition(start >= 0)
        return unsafe withUnsafeBufferPointer { buffer in
            guard let base = unsafe UnsafeRawPointer(buffer.baseAddress) else { return nil }
            var index = start
            while index &+ 8 <= total {
                // In bounds by the loop's condition.
                let word = unsafe UInt64(littleEndian: base.loadUnaligned(fromByteOffset: index, as: UInt64.self))
                let marks = suspects(word) & 0x8080_8080_8080_8080
                if marks == 0 { index &+= 8; continue }
                index &+= marks.trailingZeroBitCount >> 3
                if isWanted(unsafe base.load(fromByteOffset: index, as: UInt8.self)) { return index }
                index &+= 1
            }
            guard total >= 8 else {
                while index < total {
                    if isWanted(unsafe base.load(fromByteOffset: index, as: UInt8.self)) { return index }
                    index &+= 1
                }
                return nil
            }
            guard index < total else { return nil }
            // The rest is the end of the last eight bytes, whose first ones were examined before.
            let last = total &- 8
            let word = unsafe UInt64(littleEndian: base.loadUnaligned(fromByteOffset: last, as: UInt64.self))
            var marks = suspects(word) & 0x8080_8080_8080_8080 & UInt64.max &<< UInt64((index &- last) &* 8)
            while marks != 0 {
                index = last &+ marks.trailingZeroBitCount >> 3
                if isWanted(unsafe base.load(fromByteOffset: index, as: UInt8.self)) { return index }
                marks &= marks &- 1
            }
            return nil
        }
    }
}

extension UInt8 {
    /// `tchar`: the characters of methods and field names (RFC 9110 §5.6.2).
    @inlinable @inline(__always)
    public var isToken: Bool {
        // ! # $ % & ' * + - . 0-9, then A-Z ^ _ ` a-z | ~
        self < 64
            ? 0x03ff_6cfa_0000_0000 as UInt64 &>> UInt64(self) & 1 != 0
            : self < 128 && 0x57ff_ffff_c7ff_fffe as UInt64 &>> UInt64(self & 63) & 1 != 0
    }
}

extension UInt8 {
    /// `unreserved / sub-delims`: the characters of a registered name that is not percent-encoded (RFC 3986 §3.2.2).
    @inlinable @inline(__always)
    var isInRegisteredName: Bool {
        // ! $ & ' ( ) * + , - . 0-9 ; =, then A-Z _ a-z ~
        self < 64
            ? 0x2bff_7fd2_0000_0000 as UInt64 &>> UInt64(self) & 1 != 0
            : self < 128 && 0x47ff_fffe_87ff_fffe as UInt64 &>> UInt64(self & 63) & 1 != 0
    }

    /// A letter, a digit or a hyphen.
    @inlinable @inline(__always)
    public var isPlainInName: Bool { (self | 0x20) &- 0x61 < 26 || self &- 0x30 < 10 || self == 0x2d }
}

/// A mark is the top bit of a byte; the bits below mean nothing. A borrow or a carry between bytes can wrongly mark a
/// byte above a rightly marked one. The lowest mark is always right, and no mark is missing.
extension UInt64 {
    @inlinable @inline(__always)
    static func repeating(_ byte: UInt8) -> UInt64 { 0x0101_0101_0101_0101 &* UInt64(byte) }

    /// Marks bytes outside ASCII, below `first`, and DEL. For bytes below `first`, the difference borrows into the top
    /// bit. For DEL and above, the sum sets the top bit, except where the difference has set it.
    @inlinable @inline(__always)
    func bytesNotPrintable(from first: UInt8) -> UInt64 { (self &- .repeating(first)) | (self &+ .repeating(1)) }

    @inlinable @inline(__always)
    func bytes(_ byte: UInt8) -> UInt64 {
        let difference = self ^ .repeating(byte)
        return (difference &- .repeating(1)) & ~difference
    }

    /// Marks digits and `.`, except where a `/` is: it, and perhaps the byte above it, may stay unmarked.
    @inlinable @inline(__always)
    var digitsAndDots: UInt64 {
        let low = self & .repeating(0x7f)
        let fromDotToNine = (low &+ .repeating(0x80 - 0x2e)) & ~(low &+ .repeating(0x7f - 0x39)) & ~self
        return fromDotToNine & ~bytes(0x2f)
    }

    /// Marks letters of either case and `-`, exactly: no sum carries into the next byte, since each byte is summed with
    /// its top bit cleared.
    @inlinable @inline(__always)
    var lettersAndHyphens: UInt64 {
        let lowercase = (self | .repeating(0x20)) & .repeating(0x7f)
        let letters = (lowercase &+ .repeating(0x80 - 0x61)) & ~(lowercase &+ .repeating(0x7f - 0x7a))
        let hyphens = ~(((self ^ .repeating(0x2d)) & .repeating(0x7f)) &+ .repeating(0x7f))
        return (letters | hyphens) & ~self
    }
}
