public import Bytes

/// `uri-host [ ":" port ]`: the value of `Host` and the authority of an `http` URI (RFC 9110 §7.2, RFC 3986 §3.2).
///
/// User information is not accepted: RFC 9110 §4.2.4 has a recipient treat it as an error.
public struct Authority: Sendable, BitwiseCopyable {
    /// The host's bytes; an IPv6 literal includes its brackets.
    public let host: ByteRange
    /// `nil` if the port is absent or empty.
    public let port: UInt16?

    /// `nil` if `text` does not have that form. An empty host is valid: an empty `reg-name` (RFC 3986 §3.2.2).
    public init?(_ text: Span<UInt8>) {
        guard let hostEnd = Self.hostEnd(text) else { return nil }
        host = ByteRange(0..<hostEnd)
        guard hostEnd < text.count else { port = nil; return }
        guard text[hostEnd] == UInt8(ascii: ":"), let port = Self.port(text.extracting((hostEnd + 1)...)) else {
            return nil
        }
        self.port = port
    }

    /// The end of a valid host at the start of `text`.
    private static func hostEnd(_ text: Span<UInt8>) -> Int? {
        guard text.count > 0, text[0] == UInt8(ascii: "[") else { return registeredNameEnd(text) }
        guard let close = text.firstIndex(of: UInt8(ascii: "]")) else { return nil }
        return IPv6.isAddress(text.extracting(1..<close)) ? close + 1 : nil
    }

    /// `reg-name`, which includes IPv4 addresses (RFC 3986 §3.2.2).
    private static func registeredNameEnd(_ text: Span<UInt8>) -> Int? {
        var index = 0
        while true {
            index = text.firstIndexOutsideRegisteredName(from: index) ?? text.count
            if index == text.count || text[index] == UInt8(ascii: ":") { return index }
            guard text[index] == UInt8(ascii: "%"), index + 2 < text.count, text[index + 1].hexadecimalValue != nil,
                text[index + 2].hexadecimalValue != nil
            else { return nil }
            index += 3
        }
    }

    private static func port(_ digits: Span<UInt8>) -> UInt16?? {
        if digits.isEmpty { return .some(nil) }
        guard let value = digits.decimal(saturatingAt: 65_536), let port = UInt16(exactly: value) else { return nil }
        return port
    }
}

extension ByteBuffer {
    /// Appends the authority `text` in a normal form for the cache key, which all equivalent authorities share: the
    /// host in lower case, no default port, no leading zeroes (RFC 3986 §6.2.2.1, §6.2.3, RFC 9110 §4.2.3).
    /// Percent-encoding stays as sent.
    public func appendKeyHost(_ text: Span<UInt8>, defaultPort: UInt16) {
        appendKeyHost(text, Authority(text), defaultPort: defaultPort)
    }

    /// Appends `text`, already parsed to `authority`, in that form; unchanged if parsing failed.
    public func appendKeyHost(_ text: Span<UInt8>, _ authority: Authority?, defaultPort: UInt16) {
        guard let authority else { append(text); return }
        append(lowercasing: text.extracting(authority.host.range))
        if let port = authority.port, port != defaultPort {
            append(UInt8(ascii: ":"))
            append(decimal: UInt64(port))
        }
    }
}

/// The text form of an IPv6 address (RFC 3986 §3.2.2). Later address versions and zones are not accepted.
enum IPv6 {
    static func isAddress(_ text: Span<UInt8>) -> Bool {
        var groups = 0
        var compressed = false
        var index = 0
        if text.count >= 2, text[0] == UInt8(ascii: ":"), text[1] == UInt8(ascii: ":") { compressed = true; index = 2 }
        while index < text.count {
            let start = index
            while index < text.count, index - start < 5, text[index].hexadecimalValue != nil { index += 1 }
            if index < text.count, text[index] == UInt8(ascii: ".") {
                groups += 2
                guard isIPv4(text.extracting(start...)) else { return false }
                break
            }
            guard 1...4 ~= index - start else { return false }
            groups += 1
            if index == text.count { break }
            guard text[index] == UInt8(ascii: ":"), index + 1 < text.count else { return false }
            index += 1
            if text[index] == UInt8(ascii: ":") {
                if compressed { return false }
                compressed = true
                index += 1
            }
        }
        return compressed ? groups <= 7 : groups == 8
    }

    private static func isIPv4(_ text: Span<UInt8>) -> Bool {
        var octets = 0
        var index = 0
        while index < text.count {
            let start = index
            var value = 0
            while index < text.count, index - start < 3, text[index] &- 0x30 < 10 {
                value = value * 10 + Int(text[index] &- 0x30)
                index += 1
            }
            guard index > start, value <= 255, index - start == 1 || text[start] != UInt8(ascii: "0") else {
                return false
            }
            octets += 1
            if index == text.count { break }
            guard text[index] == UInt8(ascii: "."), index + 1 < text.count else { return false }
            index += 1
        }
        return octets == 4
    }
}
