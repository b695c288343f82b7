import Glibc

/// What resolver(5) finds in its file: whom to ask, and how.
///
/// It is read here and not by c-ares, which in 1.18 knows neither `timeout:` and `attempts:` nor a server's port.
struct ResolvConf {
    /// As many as resolver(5) asks (`MAXNS`).
    private static let mostServers = 3

    /// In the order in which to ask them: at least one.
    private(set) var servers: [SocketAddress] = []
    /// Domains that a name may be short for.
    private var search: [String]?
    /// A name with so many dots is asked for as it is before any domain is appended.
    private var ndots = 1
    /// How long a server has for its answer the first time, in nanoseconds.
    private(set) var timeout: Int64 = 5_000_000_000
    /// How often each server is asked.
    private(set) var attempts = 2
    /// Whether the servers are asked in turn, and not always the first one first.
    private(set) var rotates = false

    /// Without a usable file the server is 127.0.0.1:53, and the domain that of this machine's name, as in resolver(5).
    /// - Parameter text: of the file.
    init(_ text: String) {
        // Also CRLF, which is one character.
        for line in text.split(whereSeparator: \.isNewline) {
            let words = line.split(whereSeparator: \.isWhitespace)
            guard let key = words.first, let first = words.dropFirst().first else { continue }
            switch key {
            case "nameserver": add(server: String(first))
            case "domain": search = Self.domains([first])
            case "search": search = Self.domains(words.dropFirst())
            case "options": for option in words.dropFirst() { read(option: option) }
            default: break
            }
        }
        if servers.isEmpty { servers = [.ipv4(.loopback, port: Self.port)] }
    }

    private static let port: UInt16 = 53

    /// With `:port` behind it, and then brackets for IPv6, it is not resolver(5)'s; libevent took that too.
    private mutating func add(server text: String) {
        let literal = SocketAddress(literal: text, port: Self.port)
        guard servers.count < Self.mostServers, let server = literal ?? (try? SocketAddress(parsing: text)) else {
            return
        }
        if case .unix = server { return }
        servers.append(server)
    }

    /// Without a dot at their end; the root is none: what is asked for below it is the name as it is.
    private static func domains(_ words: ArraySlice<Substring>) -> [String] {
        words.map { $0.hasSuffix(".") ? String($0.dropLast()) : String($0) }.filter { !$0.isEmpty }
    }

    /// The most that resolver(5) takes of each.
    private mutating func read(option: Substring) {
        let parts = option.split(separator: ":", maxSplits: 1)
        let number = parts.count == 2 ? Int(parts[1]) : nil
        switch (parts.first, number) {
        case ("ndots", let number?) where number >= 0: ndots = min(number, 15)
        case ("timeout", let number?) where number > 0: timeout = Int64(min(number, 30)) * 1_000_000_000
        case ("attempts", let number?) where number > 0: attempts = min(number, 5)
        case ("rotate", nil): rotates = true
        default: break
        }
    }

    /// The names that `name` may stand for, each with the dot at its end, in the order in which to ask for them.
    func candidates(for name: String) -> [String] {
        guard !name.hasSuffix(".") else { return [name] }
        let longer = (search ?? Self.ownDomain).map { "\(name).\($0)." }
        let isLong = name.utf8.count { $0 == UInt8(ascii: ".") } >= ndots
        return isLong ? ["\(name)."] + longer : longer + ["\(name)."]
    }

    /// What stands behind the first dot of this machine's name.
    private static var ownDomain: [String] {
        var name = [CChar](repeating: 0, count: 256)
        // The last byte stays zero, whatever is written before it.
        guard unsafe gethostname(&name, name.count - 1) == 0 else { return [] }
        let text = String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        guard let dot = text.firstIndex(of: ".") else { return [] }
        let domain = text[text.index(after: dot)...]
        return domain.isEmpty ? [] : [String(domain)]
    }

    /// The server that is asked first goes behind the others: it did not answer, and another did.
    mutating func putFirstServerLast() { servers.append(servers.removeFirst()) }

    /// How long each server has for its first answer, so that all of them were asked as often as they may be within
    /// `bound`; each time later it has twice as long.
    func firstTimeout(within bound: Int64) -> Int64 {
        min(timeout, bound / (Int64(servers.count) * ((1 << Int64(attempts)) - 1)))
    }
}
