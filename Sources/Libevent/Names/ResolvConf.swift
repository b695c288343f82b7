import Glibc

/// The contents of `resolv.conf` (resolver(5)): the name servers and the options.
///
/// This type reads the file instead of c-ares, which in 1.18 knows neither `timeout:` and `attempts:` nor a server's
/// port.
struct ResolvConf {
    /// The largest number of servers that resolver(5) asks (`MAXNS`).
    private static let mostServers = 3

    /// The servers in the order in which to ask them; at least one.
    private(set) var servers: [SocketAddress] = []
    /// The search list: domains to append to a name.
    private var search: [String]?
    /// A name with at least this many dots is asked for as it is before a domain is appended.
    private var ndots = 1
    /// How long to wait for a server's first answer, in nanoseconds.
    private(set) var timeout: Int64 = 5_000_000_000
    /// The number of times each server is asked.
    private(set) var attempts = 2
    /// Whether look-ups take turns among the servers, instead of always asking the first one first.
    private(set) var rotates = false

    /// Without a usable file the server is 127.0.0.1:53, and the domain is that of this machine's name, as in
    /// resolver(5).
    /// - Parameter text: the text of the file.
    init(_ text: String) {
        // `isNewline` also holds for CRLF, which is one character.
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

    /// Also accepts a port (`:port`, with an IPv6 address in brackets), which resolver(5) does not know but libevent
    /// accepted.
    private mutating func add(server text: String) {
        let literal = SocketAddress(literal: text, port: Self.port)
        guard servers.count < Self.mostServers, let server = literal ?? (try? SocketAddress(parsing: text)) else {
            return
        }
        if case .unix = server { return }
        servers.append(server)
    }

    /// The domains without a final dot. The root is left out: a name below the root is the name itself.
    private static func domains(_ words: ArraySlice<Substring>) -> [String] {
        words.map { $0.hasSuffix(".") ? String($0.dropLast()) : String($0) }.filter { !$0.isEmpty }
    }

    /// Limits each value to the largest that resolver(5) accepts.
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

    /// The full names that `name` may stand for, each with a final dot, in the order in which to ask for them.
    func candidates(for name: String) -> [String] {
        guard !name.hasSuffix(".") else { return [name] }
        let longer = (search ?? Self.ownDomain).map { "\(name).\($0)." }
        let isLong = name.utf8.count { $0 == UInt8(ascii: ".") } >= ndots
        return isLong ? ["\(name)."] + longer : longer + ["\(name)."]
    }

    /// The part of this machine's name after its first dot.
    private static var ownDomain: [String] {
        var name = [CChar](repeating: 0, count: 256)
        // `gethostname` cannot overwrite the last byte, so it stays zero.
        guard unsafe gethostname(&name, name.count - 1) == 0 else { return [] }
        let text = String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        guard let dot = text.firstIndex(of: ".") else { return [] }
        let domain = text[text.index(after: dot)...]
        return domain.isEmpty ? [] : [String(domain)]
    }

    /// Moves the first server behind the others: it did not answer, and another server did.
    mutating func putFirstServerLast() { servers.append(servers.removeFirst()) }

    /// How long to wait for each server's first answer, so that all servers can be asked `attempts` times within
    /// `bound`. The time doubles with each further attempt.
    func firstTimeout(within bound: Int64) -> Int64 {
        min(timeout, bound / (Int64(servers.count) * ((1 << Int64(attempts)) - 1)))
    }
}
