import Bytes

/// Parses the header of the PROXY protocol, in which a load balancer states the address of its client before the client's
/// first byte: version 1, a line, or version 2, in binary ("The PROXY protocol", W. Tarreau, versions 1 and 2, sections
/// 2.1 and 2.2). Pure.
public enum ProxyHeader {
    /// The result of parsing the bytes that have arrived.
    public enum Progress: Equatable, Sendable {
        case incomplete
        /// The header ends after `length` bytes. `source` is the address of the client; `nil` if the header states none:
        /// then the connection is the load balancer's own, as for a health check.
        case complete(length: Int, source: SocketAddress?)
    }

    /// Why bytes are no such header.
    public enum SyntaxError: String, Error, Sendable {
        case beginning = "it does not begin with a PROXY header"
        case line = "the line of its PROXY header is malformed"
        case version = "its PROXY header has an unknown version or command"
        case family = "its PROXY header is not for a TCP connection"
        case length = "its PROXY header is shorter or longer than it may be"
        case checksum = "the checksum of its PROXY header is wrong"
    }

    /// Section 2.1: a line has at most 107 bytes, its end included.
    private static let longestLine = 107
    /// Bytes of addresses and further values (TLVs) in version 2: enough for a client certificate.
    private static let mostBytes = 4096

    /// Parses a header at the beginning of `bytes`. Bytes may follow it.
    /// - Throws: why the bytes are no header, as soon as that is certain.
    public static func parse(_ bytes: Span<UInt8>) throws(SyntaxError) -> Progress {
        let (line, binary) = ("PROXY ".utf8, signature)
        if bytes.begins(like: Array(line)) {
            return bytes.count < line.count ? .incomplete : try parseLine(bytes)
        }
        guard bytes.begins(like: binary) else { throw .beginning }
        return bytes.count < 16 ? .incomplete : try parseBinary(bytes)
    }

    // MARK: Version 1

    /// `PROXY TCP4 192.0.2.1 198.51.100.1 56324 443`, or `PROXY UNKNOWN` and anything, with CRLF.
    private static func parseLine(_ bytes: Span<UInt8>) throws(SyntaxError) -> Progress {
        var end = 0
        while end + 1 < bytes.count, bytes[end] != 0x0D || bytes[end + 1] != 0x0A {
            end += 1
            guard end + 2 <= longestLine else { throw .line }
        }
        guard end + 1 < bytes.count else { return .incomplete }
        let words = String(bytes.extracting(6..<end)).split(separator: " ", omittingEmptySubsequences: false)
        if words.first == "UNKNOWN" { return .complete(length: end + 2, source: nil) }
        guard words.count == 5, let port = port(words[3]), self.port(words[4]) != nil else {
            throw .line
        }
        let source: SocketAddress
        switch words[0] {
        case "TCP4":
            guard let address = IPv4Address(String(words[1])), IPv4Address(String(words[2])) != nil else {
                throw .line
            }
            source = .ipv4(address, port: port)
        case "TCP6":
            guard let address = IPv6Address(String(words[1])), IPv6Address(String(words[2])) != nil else {
                throw .line
            }
            source = .ipv6(address, port: port)
        default: throw .line
        }
        return .complete(length: end + 2, source: source)
    }

    private static func port(_ text: Substring) -> UInt16? {
        guard (1...5).contains(text.utf8.count), text.utf8.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }) else { return nil }
        return UInt16(text)
    }

    // MARK: Version 2

    private static let signature: [UInt8] = [
        0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A,
    ]

    private static func parseBinary(_ bytes: Span<UInt8>) throws(SyntaxError) -> Progress {
        let (command, family) = (bytes[12], bytes[13])
        guard command == 0x20 || command == 0x21 else { throw .version }
        let length = 16 + Int(bytes.number(at: 14, bytes: 2))
        guard length <= 16 + mostBytes else { throw .length }
        let sizeOfAddresses: Int
        switch family {
        case 0x11: sizeOfAddresses = 12
        case 0x21: sizeOfAddresses = 36
        // Unix sockets, which have no address to log; and `UNSPEC`, of which everything behind is to be ignored.
        case 0x31: sizeOfAddresses = 216
        case 0x00: sizeOfAddresses = length - 16
        default: throw .family
        }
        guard length >= 16 + sizeOfAddresses else { throw .length }
        guard bytes.count >= length else { return .incomplete }
        let header = bytes.extracting(0..<length)
        try checkValues(of: header, from: 16 + sizeOfAddresses)
        guard command == 0x21 else { return .complete(length: length, source: nil) }
        let source: SocketAddress?
        switch family {
        case 0x11:
            source = .ipv4(
                IPv4Address(bits: UInt32(truncatingIfNeeded: header.number(at: 16, bytes: 4))),
                port: UInt16(truncatingIfNeeded: header.number(at: 24, bytes: 2)))
        case 0x21:
            source = .ipv6(
                IPv6Address(high: header.number(at: 16, bytes: 8), low: header.number(at: 24, bytes: 8)),
                port: UInt16(truncatingIfNeeded: header.number(at: 48, bytes: 2)))
        default: source = nil
        }
        return .complete(length: length, source: source)
    }

    /// Section 2.2: each value has a type, a length of two bytes and its bytes. The checksum is the only one that is used.
    private static func checkValues(of header: Span<UInt8>, from start: Int) throws(SyntaxError) {
        var place = start
        while place < header.count {
            guard place + 3 <= header.count else { throw .length }
            let end = place + 3 + Int(header.number(at: place + 1, bytes: 2))
            guard end <= header.count else { throw .length }
            if header[place] == 0x03 {
                guard end == place + 7 else { throw .length }
                let stated = UInt32(truncatingIfNeeded: header.number(at: place + 3, bytes: 4))
                guard header.checksum(withZerosAt: place + 3..<end) == stated else { throw .checksum }
            }
            place = end
        }
    }
}

extension Span where Element == UInt8 {
    /// Whether the bytes, however few, may be the beginning of `other`, or begin with it.
    fileprivate func begins(like other: [UInt8]) -> Bool {
        for index in 0..<Swift.min(count, other.count) where self[index] != other[index] { return false }
        return true
    }

    /// A number of up to eight bytes in network byte order.
    fileprivate func number(at start: Int, bytes: Int) -> UInt64 {
        var number: UInt64 = 0
        for index in start..<start + bytes { number = number << 8 | UInt64(self[index]) }
        return number
    }

    /// CRC32C (RFC 9260 appendix A) of the bytes, of which those in `zeros` count as 0.
    fileprivate func checksum(withZerosAt zeros: Range<Int>) -> UInt32 {
        var sum = UInt32.max
        for index in 0..<count {
            sum ^= zeros.contains(index) ? 0 : UInt32(self[index])
            for _ in 0..<8 { sum = sum & 1 == 0 ? sum >> 1 : sum >> 1 ^ 0x82F6_3B78 }
        }
        return ~sum
    }
}
