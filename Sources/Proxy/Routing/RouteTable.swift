import Bytes

/// The routes of the settings, found by host and path in a time that does not depend on how many there are: as a walk
/// over all of them would, it finds the first in their order that a request matches (`Route.matches`). Made once, with
/// the settings; an object, so that nothing of it is copied for a request.
///
/// Routes for one host, and those for any, are a group. All groups whose host stands for that of the request are looked
/// into. In a group the paths are found in one pass over the path of the request, at each end of a segment by the hash
/// of what comes before it.
final class RouteTable: Sendable {
    /// With no more routes than this they are walked, which is cheaper then.
    static let mostWalked = 8

    private struct Group {
        /// The first route whose path is that of all requests.
        var anyPath: Int?
        /// Bytes of the longest path.
        var longestPath = 0
    }

    private let hosts: HostIndex
    /// By the number of their host, and before them those for any host.
    private let groups: [Group]
    private let paths: ByteIndex
    /// Of each path: the group, and the first route that has it there.
    private let places: [(group: Int, route: Int)]

    /// - Parameter routes: hosts, and paths as `Route.path` has them; empty for all.
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
            // At a segment's end, without the slash, and with it.
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

    /// For tests: the most places in its tables that are looked at at once.
    var longestLook: Int { max(hosts.longestLook, paths.longestLook) }
}
