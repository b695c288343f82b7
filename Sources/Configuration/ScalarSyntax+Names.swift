import Bytes
package import Libevent
package import Routing
package import Telemetry

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

extension ScalarSyntax where Value == AddressPattern {
    /// Peers by their address: `10.0.0.0/8`, `::1`, `unix`.
    package static var addressPattern: ScalarSyntax<AddressPattern> {
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
    static var format: Self { oneOf(AccessLogFormat.allCases.map { ("\($0.name)", $0) }) }
}

extension ScalarSyntax where Value == String {
    /// A token (RFC 9110 §5.6.2), unchanged.
    static var token: Self {
        ScalarSyntax("a word of letters, digits and hyphens", write: { $0 }) { text in
            HostSyntax.isToken(text) ? .value(text) : .malformed
        }
    }

    /// The proxy's name in Via. Words like `on` and `off` are refused as names: they are meant to switch the field on
    /// or off.
    static var viaName: Self {
        ScalarSyntax("a word of letters, digits and hyphens", write: { $0 }) { text in
            guard ScalarSyntax<Bool>.flag.parse(text).isMalformed else {
                return .refused("give a name such as `coalesced`, or `off`")
            }
            return HostSyntax.isToken(text) ? .value(text) : .malformed
        }
    }

    /// The name of a cookie (RFC 6265 §4.1.1), unchanged.
    static var cookieName: Self {
        ScalarSyntax("the name of a cookie such as `theme`", write: { $0 }) { text in
            if text.contains("*") { return .refused(pattern) }
            return HostSyntax.isToken(text) ? .value(text) : .malformed
        }
    }

    /// A pattern in a list of names would silently match nothing, so requests that should be kept apart would share
    /// responses.
    private static var pattern: String { "`*` is not a wildcard here; list each name" }

    /// The name of a field (RFC 9110 §5.1), in lower case.
    static var fieldName: Self {
        ScalarSyntax("the name of a header field such as `accept-language`", write: { $0 }) { text in
            if text.contains("*") { return .refused(pattern) }
            return HostSyntax.isToken(text) ? .value(text.lowercased()) : .malformed
        }
    }

    /// The value of `Host`: a host, and a port if it is not the scheme's default (RFC 9110 §7.2).
    static var authority: Self {
        ScalarSyntax("a host such as `www.example.com` or `www.example.com:8080`", write: { $0 }) { text in
            guard let (host, port) = HostSyntax.authority(text[...]) else { return .malformed }
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
            guard let name = HostSyntax.host(isWildcard ? text.dropFirst(2) : text[...]) else { return .malformed }
            guard name.contains(":") || IPv4Address(name) != nil else {
                return .value(HostPattern(isWildcard ? "*.\(name)" : name))
            }
            return isWildcard ? .malformed : .value(HostPattern(name.contains(":") ? "[\(name)]" : name))
        }
    }
}
