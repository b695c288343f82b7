import Libevent

/// The reason why a text is not the address of an engine. No reason quotes the part with the password.
package enum RedisAddressError: Error, Hashable, Sendable {
    /// The part that has a wrong escape.
    package enum Part: String, Hashable, Sendable { case user, password, path }

    case empty
    case unknownScheme(String)
    case missingHost
    case badHost(String)
    case missingBracket
    case badPort(String)
    case badDatabase(String)
    case loneUser
    case badEscape(Part)
    case badPath
    case unknownEnd(String)
}

extension RedisAddressError: CustomStringConvertible {
    /// The wrong part, and the text to write instead.
    package var description: String {
        switch self {
        case .empty: "it is empty; write redis://HOST:PORT or unix:/PATH"
        case .unknownScheme(let scheme): "'\(scheme)' is no scheme; write redis://HOST:PORT or unix:/PATH"
        case .missingHost: "the host is missing; write redis://HOST:PORT"
        case .badHost(let host): "the host '\(host)' is neither a name nor an IP address"
        case .missingBracket: "an IPv6 address must be in brackets: redis://[::1]:6379"
        case .badPort(let port): "the port '\(port)' is not a number from 1 to 65535"
        case .badDatabase(let number): "the database '\(number)' is not a number from 0 to \(Int32.max)"
        case .loneUser: "it has a user or a password alone; write USER:PASSWORD@, or :PASSWORD@ for the default user"
        case .badEscape(let part):
            "the \(part.rawValue) has a % without two hexadecimal digits behind it, or is not UTF-8; write %25 for %"
        case .badPath:
            "the path of a Unix socket must begin with /, have at most \(SocketAddress.longestPath) bytes, and no NUL"
        case .unknownEnd(let end): "'\(end)' at its end has no meaning here"
        }
    }
}

extension RedisAddress {
    /// Reads `redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE]`, the same with `rediss://` for an engine that speaks TLS,
    /// `unix:/PATH[?db=DATABASE]` or `unix://[USER:PASSWORD@]/PATH[?db=DATABASE]`. In user and password, and in the path behind `//`, `%40` and the
    /// like stand for their bytes.
    /// - Throws: the reason why the text is none of these.
    package init(parsing text: String) throws(RedisAddressError) {
        guard !text.isEmpty else { throw .empty }
        guard let colon = text.firstIndex(of: ":") else { throw .unknownScheme(text.contains("@") ? "" : text) }
        let scheme = text[..<colon].lowercased()
        let rest = text[text.index(after: colon)...]
        switch scheme {
        case "redis", "rediss":
            guard rest.hasPrefix("//") else { throw .unknownScheme("\(scheme):") }
            self = try Self.tcp(rest.dropFirst(2))
            isSecure = scheme == "rediss"
        case "unix": self = try Self.unix(rest)
        default: throw .unknownScheme(scheme)
        }
    }

    private static func tcp(_ text: Substring) throws(RedisAddressError) -> RedisAddress {
        // A password may have a slash, in spite of the standard (RFC 3986 §3.2.1).
        let (login, rest) = splitLogin(text, at: text.lastIndex(of: "@"))
        let end = rest.firstIndex { "/?#".contains($0) } ?? rest.endIndex
        var address = RedisAddress(try location(rest[..<end]))
        try address.logIn(login)
        let path = rest[end...]
        if path.isEmpty || path == "/" { return address }
        guard path.hasPrefix("/"), !path.contains(where: { "?#".contains($0) }) else {
            throw .unknownEnd(String(path))
        }
        address.database = try database(path.dropFirst())
        return address
    }

    private static func unix(_ text: Substring) throws(RedisAddressError) -> RedisAddress {
        var (path, end) = (text, text[text.endIndex...])
        if let query = text.lastIndex(of: "?") { (path, end) = (text[..<query], text[query...]) }
        var address = RedisAddress(.unix(path: ""))
        var name = String(path)
        if path.hasPrefix("//") {
            let (login, rest) = splitLogin(path.dropFirst(2), at: path.dropFirst(2).lastIndex(of: "@"))
            try address.logIn(login)
            name = try unescaped(rest, .path)
        }
        guard name.hasPrefix("/"), name.utf8.count <= SocketAddress.longestPath, !name.utf8.contains(0) else {
            throw .badPath
        }
        address.location = .unix(path: name)
        guard !end.isEmpty else { return address }
        guard end.hasPrefix("?db=") else { throw .unknownEnd(String(end)) }
        address.database = try database(end.dropFirst(4))
        return address
    }

    private static func splitLogin(_ text: Substring, at mark: Substring.Index?) -> (Substring?, Substring) {
        guard let mark else { return (nil, text) }
        return (text[..<mark], text[text.index(after: mark)...])
    }

    private mutating func logIn(_ login: Substring?) throws(RedisAddressError) {
        guard let login else { return }
        // Clients disagree whether one word alone is the user or the password.
        guard let colon = login.firstIndex(of: ":") else { throw .loneUser }
        let name = try Self.unescaped(login[..<colon], .user)
        user = name.isEmpty ? nil : name
        password = try Self.unescaped(login[login.index(after: colon)...], .password)
    }

    private static func location(_ text: Substring) throws(RedisAddressError) -> Location {
        var (host, rest) = (text, text[text.endIndex...])
        if text.hasPrefix("[") {
            guard let bracket = text.firstIndex(of: "]") else { throw .missingBracket }
            host = text[text.index(after: text.startIndex)..<bracket]
            rest = text[text.index(after: bracket)...]
            guard case .ipv6? = SocketAddress(literal: String(host), port: 0) else { throw .badHost(String(host)) }
        } else {
            if let colon = text.firstIndex(of: ":") { (host, rest) = (text[..<colon], text[colon...]) }
            guard !rest.dropFirst().contains(":") else { throw .missingBracket }
            guard !host.isEmpty else { throw .missingHost }
            guard isName(host) else { throw .badHost(String(host)) }
        }
        guard !rest.isEmpty else { return .tcp(host: String(host), port: usualPort) }
        let digits = rest.dropFirst()
        guard rest.hasPrefix(":"), isDigits(digits), let port = UInt16(digits), port > 0 else {
            throw .badPort(String(digits))
        }
        return .tcp(host: String(host), port: port)
    }

    private static func isName(_ host: Substring) -> Bool {
        host.utf8.count <= 253
            && host.utf8.allSatisfy { byte in
                switch byte {
                case 0x30...0x39, 0x41...0x5a, 0x61...0x7a, UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"):
                    true
                default: false
                }
            }
    }

    private static func isDigits(_ text: Substring) -> Bool { text.utf8.allSatisfy { $0 >= 0x30 && $0 <= 0x39 } }

    private static func database(_ text: Substring) throws(RedisAddressError) -> Int {
        guard isDigits(text), let number = Int32(text) else { throw .badDatabase(String(text)) }
        return Int(number)
    }

    /// The text with `%40` and the like replaced by their bytes.
    private static func unescaped(
        _ text: Substring, _ part: RedisAddressError.Part
    ) throws(RedisAddressError) -> String {
        var bytes: [UInt8] = []
        var left = text.utf8[...]
        while let byte = left.popFirst() {
            guard byte == UInt8(ascii: "%") else { bytes.append(byte); continue }
            let digits = Substring(left.prefix(2))
            guard digits.utf8.count == 2, !digits.hasPrefix("+"), let escaped = UInt8(digits, radix: 16) else {
                throw .badEscape(part)
            }
            bytes.append(escaped)
            left = left.dropFirst(2)
        }
        guard let result = String(validating: bytes, as: UTF8.self) else { throw .badEscape(part) }
        return result
    }
}
