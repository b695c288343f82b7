import HTTPSemantics
import Libevent
package import Routing
import YAML

/// Where the engine of the shared tier is: `redis://[USER]:PASSWORD@HOST:PORT/DATABASE`, with TLS `rediss://`, or
/// `unix:/path`.
extension ScalarSyntax where Value == RedisLocation {
    /// The syntax of `--shared`, too.
    package static var engine: ScalarSyntax<RedisLocation> {
        ScalarSyntax(EngineURL.form, words: [EngineURL.none], write: EngineURL.text(of:)) { text in
            do throws(ValueMistake) {
                return try EngineURL.location(of: text).map { .value($0) } ?? .malformed
            } catch {
                return .refused(error.description)
            }
        }
    }
}

extension ValueSyntax<[RedisLocation]> {
    /// The most nodes of a cluster that are named: any one that answers names the others.
    private static var most: Int { 100 }

    /// `none`, the URL of a server, or URLs of nodes of one cluster.
    static var engines: Self {
        let list = Self.list(of: .engine, atLeast: 1, atMost: most)
        let parse: (@Sendable (String) throws(ValueMistake) -> [RedisLocation])? = { text throws(ValueMistake) in
            if text == EngineURL.none { return [] }
            let engines = try list.parse?(text) ?? []
            if let mistake = RedisLocation.mistake(inCluster: engines) { throw ValueMistake(description: mistake) }
            return engines
        }
        return ValueSyntax(
            range: list.range,
            write: {
                $0.isEmpty ? [EngineURL.none] : $0.count == 1 ? [quoted(EngineURL.text(of: $0[0]))] : list.write($0)
            },
            parse: parse
        ) { node, name, reader in
            if node.string == EngineURL.none { return [] }
            guard let engines = list.read(node, name, &reader) else { return nil }
            if let mistake = RedisLocation.mistake(inCluster: engines) {
                reader.note(node.position, "`\(name)`: \(mistake)")
            }
            return engines
        }
    }
}

extension RedisLocation {
    /// Why these cannot be nodes of one cluster, with a remedy; `nil` if they can, or if it is a single server.
    package static func mistake(inCluster engines: [RedisLocation]) -> String? {
        guard engines.count > 1 else { return nil }
        if engines.contains(where: { if case .unix = $0.place { true } else { false } }) {
            return
                "several URLs are nodes of one cluster, and a node has no Unix socket; give one server, or `redis://` for all"
        }
        if Set(engines.map(\.isSecure)).count > 1 {
            return
                "the nodes of a cluster that are not named speak TLS if those that are named do; give `rediss://` for all, or for none"
        }
        if engines.contains(where: { $0.database != 0 }) {
            return "a cluster has database 0 only; remove the number after the `/`"
        }
        if Set(engines.map(\.login)).count > 1 {
            return
                "the nodes of a cluster that are not named get the user and password of those that are; give all the same"
        }
        return nil
    }
}

private enum EngineURL {
    static let none = "none"
    static let form = "a URL such as `redis://127.0.0.1:6379`, or `unix:/run/redis/redis.sock`"
    private static let loginForm =
        "write `redis://USER:PASSWORD@HOST`, or `redis://:PASSWORD@HOST` for the default user"
    private static let reserved =
        "`/`, `?` and `#` in a user or password are written `%2F`, `%3F` and `%23`; write them so"
    private static let mostDatabases = 65_536

    /// - Returns: `nil` for a text that is neither such a URL nor nearly one.
    static func location(of text: String) throws(ValueMistake) -> RedisLocation? {
        if text == none { throw ValueMistake(description: "`none` stands alone; remove it from the list") }
        if text.hasPrefix("unix:") { return try socket(text.dropFirst("unix:".count)) }
        guard let mark = text.firstRange(of: "://") else { return nil }
        let scheme = text[..<mark.lowerBound].lowercased()
        guard let isSecure = ["redis": false, "rediss": true, "valkey": false, "valkeys": true][scheme] else {
            throw ValueMistake(
                description: "the scheme must be `redis://`, or `rediss://` for TLS, also for Valkey; give \(form)")
        }
        var location = try server(text[mark.upperBound...])
        location.isSecure = isSecure
        return location
    }

    private static func server(_ rest: Substring) throws(ValueMistake) -> RedisLocation {
        let end = rest.firstIndex { "/?#".contains($0) } ?? rest.endIndex
        let (authority, path) = (rest[..<end], rest[end...])
        guard !path.contains("@") else {
            throw ValueMistake(description: reserved)
        }
        let at = authority.lastIndex(of: "@")
        let (host, port) = try endpoint(at.map { authority[authority.index(after: $0)...] } ?? authority)
        var location = RedisLocation(.tcp(host: host, port: port))
        if let at { location.login = try login(authority[..<at]) }
        location.database = try database(path)
        return location
    }

    private static func endpoint(_ text: Substring) throws(ValueMistake) -> (host: String, port: UInt16) {
        let hasBrackets = text.hasPrefix("[")
        let hostEnd = hasBrackets ? text.firstIndex(of: "]").map { text.index(after: $0) } : text.firstIndex(of: ":")
        let (name, rest) = (text[..<(hostEnd ?? text.endIndex)], text[(hostEnd ?? text.endIndex)...])
        guard !name.isEmpty else {
            throw ValueMistake(description: "the host is missing; give \(form)")
        }
        guard let host = HostSyntax.host(name), rest.isEmpty || rest.hasPrefix(":") else {
            throw ValueMistake(
                description: "the host is neither a name nor an address (IPv6 stands in brackets); give \(form)")
        }
        if rest.isEmpty { return (host, RedisLocation.ordinaryPort) }
        guard isDigits(rest.dropFirst()), let port = UInt16(rest.dropFirst()), port > 0 else {
            throw ValueMistake(description: "the port is out of range; give one from 1 to 65535, or none for 6379")
        }
        return (host, port)
    }

    private static func database(_ path: Substring) throws(ValueMistake) -> Int {
        if path.isEmpty || path == "/" { return 0 }
        guard path.hasPrefix("/"), isDigits(path.dropFirst()), let number = Int(path.dropFirst()),
            number < mostDatabases
        else {
            throw ValueMistake(
                description:
                    "what follows the host is the number of a database, from 0 to \(mostDatabases - 1); give one such as `/1`, or nothing"
            )
        }
        return number
    }

    /// A path, before which `//USER:PASSWORD@` may stand.
    private static func socket(_ rest: Substring) throws(ValueMistake) -> RedisLocation {
        var (path, login) = (rest, RedisLocation.Login?.none)
        if rest.hasPrefix("//"), let at = rest.lastIndex(of: "@") {
            let user = rest[..<at].dropFirst(2)
            if !user.contains("/") {
                login = try self.login(user)
                path = rest[rest.index(after: at)...]
            } else if user.contains(":") {
                throw ValueMistake(description: reserved)
            }
        }
        if path.hasPrefix("///") { path = path.dropFirst(2) }
        // A line feed in the path would end a line of the log.
        let isText = !path.unicodeScalars.contains { $0.value < 0x20 || $0.value == 0x7F || $0 == "\u{FFFD}" }
        guard isText, path.hasPrefix("/"), path != "/", path.utf8.count <= SocketAddress.longestPath else {
            throw ValueMistake(
                description:
                    "the path of a Unix socket begins with `/`, has at most \(SocketAddress.longestPath) bytes, no control characters, and is UTF-8; give one such as `unix:/run/redis/redis.sock`"
            )
        }
        var location = RedisLocation(.unix(path: String(path)))
        location.login = login
        return location
    }

    private static func login(_ text: Substring) throws(ValueMistake) -> RedisLocation.Login {
        guard let colon = text.firstIndex(of: ":") else {
            // Some programs take it for a user, others for a password.
            throw ValueMistake(description: "a user or a password stands alone; \(loginForm)")
        }
        let password = text[text.index(after: colon)...]
        guard !password.isEmpty else { throw ValueMistake(description: "the password is empty; \(loginForm)") }
        var login = RedisLocation.Login(password: try decoded(password))
        if colon != text.startIndex { login.user = try decoded(text[..<colon]) }
        return login
    }

    /// Percent-decoded (RFC 3986 §2.1).
    private static func decoded(_ text: Substring) throws(ValueMistake) -> String {
        var bytes: [UInt8] = []
        var rest = text.utf8[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            let digits = rest.prefix(2)
            guard digits.count == 2, let value = UInt8(Substring(digits), radix: 16),
                !digits.contains(UInt8(ascii: "+"))
            else {
                throw ValueMistake(description: "a `%` in a user or password begins `%25` or the like; write it so")
            }
            bytes.append(value)
            rest = rest.dropFirst(2)
        }
        guard let decoded = String(validating: bytes, as: UTF8.self), !decoded.contains("\u{FFFD}"),
            !decoded.unicodeScalars.contains("\0")
        else {
            throw ValueMistake(
                description: "the user or the password is not UTF-8, or has a NUL; give the engine another one")
        }
        return decoded
    }

    static func text(of location: RedisLocation) -> String {
        let plain = "\(location)"
        guard let login = location.login else { return plain }
        let user = login.user == RedisLocation.Login.defaultUser ? "" : encoded(login.user)
        let prefix = "\(user):\(encoded(login.password))@"
        return switch location.place {
        case .tcp: plain.replacing("://", with: "://\(prefix)", maxReplacements: 1)
        case .unix: plain.replacing(":", with: "://\(prefix)", maxReplacements: 1)
        }
    }

    /// Percent-encoded, but for unreserved characters (RFC 3986 §2.3).
    private static func encoded(_ text: String) -> String {
        text.utf8.reduce(into: "") { encoded, byte in
            let scalar = Unicode.Scalar(byte)
            if scalar.isASCII
                && (scalar.properties.isAlphabetic || isDigits(String(scalar))
                    || "-._~".unicodeScalars.contains(scalar))
            {
                encoded.unicodeScalars.append(scalar)
            } else {
                let digits = String(byte, radix: 16, uppercase: true)
                encoded += "%\(digits.count < 2 ? "0" : "")\(digits)"
            }
        }
    }
}
