import Routing

/// An index of routes by scheme, host and the segments of their paths. It finds the first route that covers another one
/// (`RouteSettings.covers`) without comparing with all of them.
struct RouteIndex {
    /// A position in a path, before its first slash or after one of its segments. `here` is the number of the first
    /// route whose path ends here, `below` that of the first whose path ends with the slash that follows.
    private struct Place {
        var here: Int?
        var below: Int?
    }

    private struct Step: Hashable {
        let place: Int
        let segment: Substring
    }

    private struct Beginning: Hashable {
        /// `nil`: both.
        let scheme: ClientScheme?
        /// `nil`: any.
        let host: HostPattern?
    }

    private var places: [Place] = []
    /// The first place of the paths of each scheme and host.
    private var beginnings: [Beginning: Int] = [:]
    private var steps: [Step: Int] = [:]

    /// The segments after the first slash; the last one is empty if the path ends with a slash.
    private static func segments(of route: RouteSettings) -> ArraySlice<Substring> {
        route.path.split(separator: "/", omittingEmptySubsequences: false).dropFirst()
    }

    /// - Parameter number: must be higher than that of every route added before.
    mutating func add(_ route: RouteSettings, number: Int) {
        var segments = Self.segments(of: route)
        let endsWithSlash = segments.last?.isEmpty ?? false
        if endsWithSlash { segments.removeLast() }
        let beginning = Beginning(scheme: route.scheme, host: route.host)
        var place = newPlace(unless: beginnings[beginning])
        beginnings[beginning] = place
        for segment in segments {
            let step = Step(place: place, segment: segment)
            place = newPlace(unless: steps[step])
            steps[step] = place
        }
        if endsWithSlash {
            places[place].below = places[place].below ?? number
        } else {
            places[place].here = places[place].here ?? number
        }
    }

    private mutating func newPlace(unless known: Int?) -> Int {
        if let known { return known }
        places.append(Place())
        return places.count - 1
    }

    /// The number of the first route added that covers `route`.
    func first(covering route: RouteSettings) -> Int? {
        let hosts = [nil] + (route.host?.covering ?? [])
        let schemes = route.scheme.map { [nil, $0] } ?? [nil]
        let segments = Self.segments(of: route)
        return hosts.flatMap { host in schemes.map { Beginning(scheme: $0, host: host) } }
            .compactMap { beginnings[$0].flatMap { first(from: $0, covering: segments) } }.min()
    }

    private func first(from beginning: Int, covering segments: ArraySlice<Substring>) -> Int? {
        var place = beginning
        var first: Int?
        func see(_ number: Int?) { if let number { first = min(first ?? number, number) } }
        for segment in segments {
            see(places[place].below)
            guard let next = steps[Step(place: place, segment: segment)] else { break }
            place = next
            see(places[place].here)
        }
        return first
    }
}
