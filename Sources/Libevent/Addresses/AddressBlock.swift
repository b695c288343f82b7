/// A block of IP addresses, written `10.0.0.0/8` or `fd00::/8` (RFC 4632 §3.1, RFC 4291 §2.3), or a single address.
public struct AddressBlock: Hashable, Sendable {
    /// The reasons why a text is not a block of addresses.
    public enum SyntaxError: String, Error, Sendable {
        case address = "it is not an IP address"
        case length = "the prefix length after the slash is invalid"
        case hostBits = "the address has bits set beyond the prefix length"
    }

    private let first: IPAddress
    /// The prefix length in the 128 bits of `IPAddress`: 96 more than the written length for an IPv4 block.
    private let sharedBits: Int
    private let isWrittenAsIPv4: Bool

    /// - Throws: the reason why the text is not a block.
    public init(parsing text: String) throws(SyntaxError) {
        let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false).map { Array($0.utf8) }
        let written = parts[0]
        let address = IPAddress(written.span)
        guard let address else { throw .address }
        first = address
        isWrittenAsIPv4 = !written.contains(UInt8(ascii: ":"))
        let most = isWrittenAsIPv4 ? 32 : 128
        var length = most
        if parts.count == 2 {
            guard let number = Int(String(decoding: parts[1], as: UTF8.self)), (0...most).contains(number),
                parts[1].allSatisfy({ $0 >= 0x30 && $0 <= 0x39 })
            else { throw .length }
            length = number
        }
        sharedBits = length + 128 - most
        let mask = Self.mask(sharedBits)
        guard first.high & ~mask.high == 0, first.low & ~mask.low == 0 else { throw .hostBits }
    }

    /// The block that contains `address` and has the given prefix length.
    /// - Parameters:
    ///   - ipv4Bits: the prefix length if `address` is IPv4, 0 to 32.
    ///   - ipv6Bits: the prefix length if `address` is IPv6, 0 to 128.
    public init(around address: IPAddress, ipv4Bits: Int, ipv6Bits: Int) {
        isWrittenAsIPv4 = address.isIPv4
        sharedBits = isWrittenAsIPv4 ? ipv4Bits + 96 : ipv6Bits
        let mask = Self.mask(sharedBits)
        first = IPAddress(high: address.high & mask.high, low: address.low & mask.low)
    }

    /// Whether `address` is in the block.
    public func contains(_ address: IPAddress) -> Bool {
        let mask = Self.mask(sharedBits)
        return address.high & mask.high == first.high && address.low & mask.low == first.low
    }

    /// The first address in the block and the last one.
    public var range: ClosedRange<IPAddress> {
        let mask = Self.mask(sharedBits)
        return first...IPAddress(high: first.high | ~mask.high, low: first.low | ~mask.low)
    }

    private static func mask(_ bits: Int) -> (high: UInt64, low: UInt64) {
        // A shift by 64 or more gives 0.
        (~(UInt64.max >> min(bits, 64)), ~(UInt64.max >> max(0, bits - 64)))
    }
}

extension AddressBlock: CustomStringConvertible {
    /// The text that `init(parsing:)` accepts.
    public var description: String {
        let address =
            isWrittenAsIPv4
            ? IPv4Address(bits: UInt32(truncatingIfNeeded: first.low)).description
            : IPv6Address(high: first.high, low: first.low).description
        return sharedBits == 128 ? address : "\(address)/\(sharedBits - (isWrittenAsIPv4 ? 96 : 0))"
    }
}
