import Bytes
package import Libevent
package import Routing
package import Telemetry
package import Upstream

/// Addresses, URLs, and names that occur in messages.
extension ScalarSyntax where Value == SocketAddress {
    /// An address to listen on: `127.0.0.1:8080`, `[::1]:8080`, `unix:/path`.
    package static var address: ScalarSyntax<SocketAddress> {
        ScalarSyntax(
            "an address with a port such as `127.0.0.1:8080` or `[::1]:8080`, or `unix:/path`", write: { "\($0)" }
        ) { text in
            do throws(AddressSyntaxError) {
                return .value(try SocketAddress(parsing: text))
            } catch {
                return .refused(
                    "not an address to listen on: \(error.rawValue); give one such as `127.0.0.1:8080`, `[::1]:8080` or `unix:/path`"
                )
            }
        }
    }
}

extension ScalarSyntax where Value == TrustedProxy {
    /// A proxy whose statements about its clients are trusted: `10.0.0.0/8`, `::1`, `unix`.
    package static var trustedProxy: ScalarSyntax<TrustedProxy> {
        let kind = "an address such as `127.0.0.1`, a block of them such as `10.0.0.0/8` or `fd00::/8`, or `unix`"
        return ScalarSyntax(kind, write: { if case .addresses(let block) = $0 { "\(block)" } else { "unix" } }) {
            text in
            if text == "unix" { return .value(.unix) }
            do throws(AddressBlock.SyntaxError) {
                return .value(.addresses(try AddressBlock(parsing: text)))
            } catch {
                return .refused(
                    "not an address or a block of addresses: \(error.rawValue); give one such as `127.0.0.1`, `10.0.0.0/8` or `fd00::/8`, or `unix`"
                )
            }
        }
    }
}

extension ScalarSyntax where Value == UpstreamServer {
    /// A server of an upstream: `http://host:port`, or `unix:/path`.
    package static var server: ScalarSyntax<UpstreamServer> {
        ScalarSyntax("a URL such as `http://127.0.0.1:9000`, or `unix:/path`", write: { "\($0)" }) { text in
            if text.hasPrefix("unix:") { return socket(text) }
            if text.lowercased().hasPrefix("https://") {
                return .refused(
                    "TLS to upstreams is not supported; use `http://`, through a tunnel if the network is not trusted")
            }
            guard text.lowercased().hasPrefix("http://") else { return .malformed }
            var authority = text.dropFirst(7)
            // nginx writes Unix sockets this way.
            guard !authority.hasPrefix("unix:/") else {
                return .refused("write a Unix socket without `http://`: `unix:/path`")
            }
            if authority.hasSuffix("/") { authority.removeLast() }
            guard !authority.contains(where: { "/?#".contains($0) }) else {
                return .refused("a server takes no path, since requests keep theirs; remove everything after the port")
            }
            guard !authority.contains("@") else {
                return .refused("a server takes no user name or password; remove them")
            }
            guard let (host, port) = split(authority) else { return .malformed }
            return .value(port.map { UpstreamServer(host: host, port: $0) } ?? UpstreamServer(host: host))
        }
    }

    private static func socket(_ text: String) -> Parsed {
        // A line feed in the path would end a line of the log.
        let isText = !text.unicodeScalars.contains { $0.value < 0x20 || $0.value == 0x7F || $0 == "\u{FFFD}" }
        guard isText, let address = try? SocketAddress(parsing: text), case .unix(let path) = address,
            path.hasPrefix("/"), path != "/"
        else {
            return .refused(
                "the path of a Unix socket begins with `/`, has at most \(SocketAddress.longestPath) bytes, no control characters, "
                    + "and is UTF-8; give one such as `unix:/run/app.sock`")
        }
        return .value(.unix(path: path))
    }

    /// Splits an authority into host and port (RFC 3986 §3.2). Port 0 is valid only for listening.
    fileprivate static func split(_ authority: Substring) -> (host: String, port: UInt16?)? {
        var hostEnd = authority.lastIndex(of: ":") ?? authority.endIndex
        if let bracket = authority.lastIndex(of: "]") {
            hostEnd = authority.index(after: bracket)
            guard hostEnd == authority.endIndex || authority[hostEnd] == ":" else { return nil }
        }
        guard let host = hostName(authority[..<hostEnd]) else { return nil }
        guard hostEnd != authority.endIndex else { return (host, nil) }
        let digits = authority[authority.index(after: hostEnd)...]
        guard isDigits(digits), let port = UInt16(digits), port > 0 else { return nil }
        return (host, port)
    }
}

extension ScalarSyntax where Value == AccessLogTarget {
    /// The access log's target: `off`, `stdout` or a path.
    package static var accessLogTarget: ScalarSyntax<AccessLogTarget> {
        ScalarSyntax(
            "`off`, `stdout`, or a path such as `/var/log/coalesced/access.log`", words: ["off", "stdout"],
            write: { target in
                switch target {
                case .off: "off"
                case .standardOutput: "stdout"
                case .file(let path): path
                }
            }
        ) { text in
            switch text {
            case "off": .value(.off)
            case "stdout": .value(.standardOutput)
            case _
            where text.unicodeScalars.contains(where: { $0.value < 0x20 || $0.value == 0x7F || $0 == "\u{FFFD}" }):
                .refused("a path must be valid UTF-8 without control characters")
            // A bare word is more likely a typing mistake than a file.
            case _ where text.contains("/") || text.contains("."): .value(.file(path: text))
            default: .malformed
            }
        }
    }
}

extension ScalarSyntax where Value == AccessLogFormat {
    static var format: Self {
        let names = AccessLogFormat.allCases.map { "\($0.name)" }
        return ScalarSyntax(
            "one of these words", range: names.joined(separator: ", "), words: names, write: { "\($0.name)" }
        ) { text in
            AccessLogFormat.allCases.first { "\($0.name)" == text }.map { .value($0) } ?? .malformed
        }
    }
}

extension ScalarSyntax where Value == String {
    /// A token (RFC 9110 §5.6.2), unchanged.
    static var token: Self {
        ScalarSyntax("a word of letters, digits and hyphens", write: { $0 }) { text in
            isToken(text) ? .value(text) : .malformed
        }
    }

    /// The proxy's name in Via. Words like `on` and `off` are refused as names: they are meant to switch the field on
    /// or off.
    static var viaName: Self {
        ScalarSyntax("a word of letters, digits and hyphens", write: { $0 }) { text in
            guard ScalarSyntax<Bool>.flag.parse(text).isMalformed else {
                return .refused("give a name such as `coalesced`, or `off`")
            }
            return isToken(text) ? .value(text) : .malformed
        }
    }

    /// The name of a cookie (RFC 6265 §4.1.1), unchanged.
    static var cookieName: Self {
        ScalarSyntax("the name of a cookie such as `theme`", write: { $0 }) { text in
            if text.contains("*") { return .refused(pattern) }
            return isToken(text) ? .value(text) : .malformed
        }
    }

    /// A pattern in a list of names would silently match nothing, so requests that should be kept apart would share
    /// responses.
    private static var pattern: String { "`*` is not a wildcard here; list each name" }

    /// The name of a field (RFC 9110 §5.1), in lower case.
    static var fieldName: Self {
        ScalarSyntax("the name of a header field such as `accept-language`", write: { $0 }) { text in
            if text.contains("*") { return .refused(pattern) }
            return isToken(text) ? .value(text.lowercased()) : .malformed
        }
    }

    /// The value of `Host`: a host, and a port if it is not the scheme's default (RFC 9110 §7.2).
    static var authority: Self {
        ScalarSyntax("a host such as `www.example.com` or `www.example.com:8080`", write: { $0 }) { text in
            guard let (host, port) = ScalarSyntax<UpstreamServer>.split(text[...]) else { return .malformed }
            let name = host.contains(":") ? "[\(host)]" : host
            return .value(port.map { $0 == 80 ? name : "\(name):\($0)" } ?? name)
        }
    }

    static var absolutePath: Self {
        ScalarSyntax("the beginning of a path such as `/static/`", write: { $0 }) { text in
            if text.contains("*") {
                return .refused("`*` is not a wildcard; remove it: a path matches everything below it")
            }
            return text.hasPrefix("/") && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }
                && !text.contains { "?#".contains($0) }
                ? .value(text) : .malformed
        }
    }

    /// The name of a query parameter as it is in the URL, encoded.
    static var parameter: Self {
        ScalarSyntax("the name of a query parameter such as `page`", write: { $0 }) { text in
            !text.isEmpty && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }
                && !text.contains { "&=#".contains($0) }
                ? .value(text) : .malformed
        }
    }
}

extension ScalarSyntax where Value == HostPattern {
    /// A host without a port, as in `Host` (RFC 9110 §7.2), so IPv6 keeps its brackets; or a wildcard for all names
    /// below a host.
    static var host: Self {
        ScalarSyntax("a host such as `www.example.com`, or `*.example.com`, without a port", write: \.text) { text in
            let isWildcard = text.hasPrefix("*.")
            guard let name = hostName(isWildcard ? text.dropFirst(2) : text[...]) else { return .malformed }
            guard name.contains(":") || IPv4Address(name) != nil else {
                return .value(HostPattern(isWildcard ? "*.\(name)" : name))
            }
            return isWildcard ? .malformed : .value(HostPattern(name.contains(":") ? "[\(name)]" : name))
        }
    }
}

private func isToken(_ text: String) -> Bool { !text.isEmpty && text.utf8.allSatisfy(\.isToken) }

/// A registered name, an IPv4 address, or an IPv6 address in brackets (which are removed), in lower case.
private func hostName(_ text: Substring) -> String? {
    if text.hasPrefix("["), text.hasSuffix("]") {
        let address = String(text.dropFirst().dropLast())
        return IPv6Address(address) != nil ? address.lowercased() : nil
    }
    guard text.utf8.count <= longestHost, isToken(String(text)), !text.contains(where: { "!#$%&'*+^`|~".contains($0) })
    else { return nil }
    var labels = text.split(separator: ".", omittingEmptySubsequences: false)
    // Remove the empty label of the root.
    if labels.count > 1, labels.last?.isEmpty == true { labels.removeLast() }
    guard let last = labels.last,
        labels.allSatisfy({ 1...longestLabel ~= $0.utf8.count && !$0.hasPrefix("-") && !$0.hasSuffix("-") })
    else { return nil }
    // No top-level domain is a number: such a host is meant to be an address (RFC 3696 §2).
    guard !isDigits(last) || IPv4Address(String(text)) != nil else { return nil }
    return text.lowercased()
}

/// Limits of RFC 1035 §2.3.4, in bytes.
private let (longestHost, longestLabel) = (253, 63)
