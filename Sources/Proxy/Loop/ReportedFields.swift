import Bytes
import HTTPSemantics
import Libevent
import Telemetry

/// A network of peers that counts as one peer in notices that are written once.
typealias PeerNetwork = AddressBlock

extension PeerNetwork {
    /// The smallest network that one holder of addresses mostly has.
    init(around address: IPAddress) { self.init(around: address, ipv4Bits: 24, ipv6Bits: 48) }
}

/// The removed fields that were reported to the operator, for each network of peers (`Notices.removed`). A value, owned
/// by one loop, or shared by all under a lock. Bounded: clients choose the names, and some have many addresses.
struct ReportedFields: Sendable {
    /// The most groups; a further one replaces the oldest.
    static let mostGroups = 1024
    /// The most fields reported of one network, and the most odd names besides: a client can make up any number of
    /// names.
    static let (mostFields, mostOddNames) = (32, 8)

    /// The most notices in a minute: clients with addresses in many networks may try to fill the log.
    static let mostPerMinute = 10

    private enum Kind: Hashable { case removed }

    /// The odd names of one network, or its other names.
    private struct Group: Hashable {
        let network: PeerNetwork?
        let areOdd: Bool

        var most: Int { areOdd ? mostOddNames : mostFields }
    }

    /// Hashes of names in lower case.
    private var told: [Group: [UInt64]] = [:]
    /// The groups in the order in which they were added; a ring once it is full, with the oldest at `next`.
    private var groups: [Group] = []
    private var next = 0
    private var limit = RateLimitedNotice<Kind>(limit: mostPerMinute, interval: 60_000_000_000)

    /// Whether this field need not be reported: it was reported, or its group has reached its limit.
    func has(_ field: RemovedField, from network: PeerNetwork?) -> Bool {
        let group = Group(network: network, areOdd: field.isOdd)
        guard let told = told[group] else { return false }
        return told.count >= group.most || told.contains(Self.hash(of: field.name))
    }

    /// Notes that the field was reported. No effect if `has` returns true for it.
    mutating func add(_ field: RemovedField, from network: PeerNetwork?) {
        guard !has(field, from: network) else { return }
        let group = Group(network: network, areOdd: field.isOdd)
        if told[group] == nil {
            if groups.count < Self.mostGroups {
                groups.append(group)
            } else {
                told[groups[next]] = nil
                groups[next] = group
                next = (next + 1) % Self.mostGroups
            }
        }
        told[group, default: []].append(Self.hash(of: field.name))
    }

    private static func hash(of name: ByteSlice) -> UInt64 {
        var hash = RunningHash()
        let bytes = name.span
        for index in bytes.indices { hash.add(bytes[index].lowercasedASCII) }
        return hash.value
    }

    /// Takes the fields to report now.
    /// - Parameter now: monotonic nanoseconds.
    /// - Returns: each field only once; `nil` if the report must wait.
    mutating func take(_ fields: [RemovedField], from network: PeerNetwork?, at now: UInt64) -> [RemovedField]? {
        let new = fields.filter { !has($0, from: network) }
        if new.isEmpty { return [] }
        guard case .write = limit.admit(.removed, at: now) else { return nil }
        // Several field lines may have the same name.
        return new.filter { field in
            defer { add(field, from: network) }
            return !has(field, from: network)
        }
    }

    // MARK: The text

    /// The most bytes of a name in a notice.
    private static let longestName = 64

    /// - Parameters:
    ///   - fields: not empty.
    ///   - peer: as text.
    ///   - isTrusted: whether the peer is a trusted proxy.
    static func notice(of fields: [RemovedField], from peer: String, in network: PeerNetwork?, isTrusted: Bool)
        -> String
    {
        let reasons = RemovedField.Reason.allCases.compactMap { reason -> String? in
            let names = fields.filter { $0.reason == reason }.map { String($0.name).prefix(longestName) }
            guard !names.isEmpty else { return nil }
            return "\(names.joined(separator: ", ")) (\(advice(reason, isTrusted: isTrusted)))"
        }
        let others = network.map { ", nor again of \($0)" } ?? ""
        return
            "fields of requests from \(peer) are not forwarded: \(reasons.joined(separator: "; ")). Not told again\(others)"
    }

    private static func advice(_ reason: RemovedField.Reason, isTrusted: Bool) -> String {
        switch reason {
        case .untrusted:
            "believed only from clients.trusted-proxies: if this peer is a proxy of yours, such as a TLS terminator, name it there"
        case .notInKey:
            isTrusted
                ? "forwarded only if the route's key.headers names it"
                : "forwarded only if the route's key.headers names it, whether or not the peer is in clients.trusted-proxies"
        case .oddName: "other characters than letters, digits and hyphens: forwarding.odd-field-names"
        case .trailer: "a trailer field, which may not say that"
        }
    }
}

extension RemovedField {
    /// Whether the client may have made up the field's name.
    fileprivate var isOdd: Bool {
        switch reason {
        case .oddName, .trailer: true
        case .untrusted, .notInKey: false
        }
    }
}
