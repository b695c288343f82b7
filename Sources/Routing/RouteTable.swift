import Bytes

/// Finds a route by host and path in a time that does not depend on the number of routes. The result is the same as
/// that of a search from first to last: the first route that a request matches (`Route.matches`). Made once, with the
/// settings; a class, so that a request copies none of it.
///
/// The routes with the same host pattern form a group, and so do the routes for any host. All groups whose pattern
/// matches the host of the request are searched. In a group, one pass over the path of the request finds the routes: at
/// the end of each segment, by the hash of the bytes up to there.
final class RouteTable: Sendable {
    /// At most this many routes are searched from first to last, which is cheaper.
    static let mostWalked = 8

    private struct Group {
        /// The first route that matches every path.
        var anyPath: Int?
        /// Bytes of the longest path among the group's routes.
        var longestPath = 0
    }

    private let hosts: HostIndex
    /// The group for any host, then the groups in the order of their hosts' numbers.
    private let groups: [Group]
    private let paths: ByteIndex
    /// For each path: its group, and the first route of the group with this path.
    private let places: [(group: Int, route: Int)]

    /// - Parameter routes: hosts, and paths in the form of `Route.path`; an empty path matches all.
    init(_ routes: [(host: HostPattern?, path: ByteSlice)]) {
        struct Place: Hashable {
            let group: Int
            let path: ByteSlice
        }
        var patterns: [HostPattern] = []
        var groupOfHost: [HostPattern: Int] = [:]
        var groups = [Group()]
        var known: Set<Place> = []
        var (places, entries): ([(Int, Int)], [(UInt64, [UInt8])]) = ([], [])
        for (number, route) in routes.enumerated() {
            var group = 0
            if let host = route.host {
                group = groupOfHost[host] ?? groups.count
                if group == groups.count {
                    groupOfHost[host] = group
                    patterns.append(host)
                    groups.append(Group())
                }
            }
            if route.path.isEmpty {
                groups[group].anyPath = groups[group].anyPath ?? number
            } else if known.insert(Place(group: group, path: route.path)).inserted {
                let bytes = Array(String(route.path).utf8)
                groups[group].longestPath = max(groups[group].longestPath, bytes.count)
                places.append((group, number))
                entries.append((RunningHash.of(bytes, seed: group), bytes))
            }
        }
        hosts = HostIndex(patterns)
        self.groups = groups
        self.places = places
        paths = ByteIndex(entries)
    }

    /// The number of the first route that a request for `path` at `host` matches. `host` is without a port.
    func first(host: Span<UInt8>, path: Span<UInt8>) -> Int? {
        var first = self.first(in: 0, path: path)
        var matches = HostMatches(host)
        while let number = matches.next(in: hosts) {
            first = Self.lower(first, self.first(in: number + 1, path: path))
        }
        return first
    }

    private func first(in number: Int, path: Span<UInt8>) -> Int? {
        let group = groups[number]
        var first = group.anyPath
        guard group.longestPath > 0 else { return first }
        var hash = RunningHash(seed: number)
        let end = min(path.count, group.longestPath)
        for index in 0..<end {
            let byte = path[index]
            let isSlash = byte == UInt8(ascii: "/")
            // At the end of a segment, look up the path without the slash and with it.
            if isSlash, index > 0 {
                first = Self.lower(first, route(in: number, path: path.extracting(0..<index), hash))
            }
            hash.add(byte)
            if isSlash {
                first = Self.lower(first, route(in: number, path: path.extracting(0...index), hash))
            }
        }
        if end == path.count || path[end] == UInt8(ascii: "/") {
            first = Self.lower(first, route(in: number, path: path.extracting(0..<end), hash))
        }
        return first
    }

    private func route(in group: Int, path: Span<UInt8>, _ hash: RunningHash) -> Int? {
        var look = paths.look(for: hash.value)
        while let number = paths.next(&look) {
            let place = places[number]
            if place.group == group, paths.isEqual(number, to: path) { return place.route }
        }
        return nil
    }

    private static func lower(_ one: Int?, _ other: Int?) -> Int? {
        guard let one else { return other }
        guard let other else { return one }
        return min(one, other)
    }

    /// For tests: the most slots of a hash table that are examined in one look-up.
    var longestLook: Int { max(hosts.longestLook, paths.longestLook) }
}
