import Routing
import YAML

/// Warnings about keys of a route that work, but not as they look: a redirect without end, keys without effect, and a
/// `${host}` of the client's choice.
extension Reader {
    /// A route with an answer of its own must not lead clients back to itself, and asks no upstream.
    mutating func checkOwnAnswer(of route: RouteSettings, after earlier: RouteIndex, in node: Node) {
        guard route.isAnsweredHere, case .mapping(let mapping) = node else { return }
        checkEnd(of: route, after: earlier, in: node)
        let answer = route.redirect == nil ? "respond" : "redirect"
        for entry in mapping.pairs {
            guard let name = entry.key.string, !RouteKeys.ofOwnAnswers.contains(name) else { continue }
            warn(
                entry.key.position,
                "`\(name)` has no effect on a route with `\(answer)`, which asks no upstream and stores nothing; remove it"
            )
        }
    }

    /// A redirect must not lead to its own route.
    private mutating func checkEnd(of route: RouteSettings, after earlier: RouteIndex, in node: Node) {
        guard let target = route.redirect?.target, let position = node["redirect"]?["to"]?.position,
            let place = route.place(ledToBy: target.text), route.covers(place), earlier.first(covering: place) == nil
        else { return }
        if let scheme = place.scheme, route.scheme == nil, place.host == route.host, place.path == route.path {
            let other = scheme == .https ? ClientScheme.http : .https
            warn(
                position,
                "requests for \(scheme.name) are redirected to themselves, without end; add `scheme: \(other.name)` to the route"
            )
        } else {
            let host = place.host == route.host ? "" : place.host?.text ?? ""
            warn(
                position,
                "this leads to the same route, without end; change `to`"
                    + (place.covers(route)
                        ? "" : ", or put a route for `\(host)\(Spelling.shown(place.path))` before this one"))
        }
    }

    /// A `${host}` should stand for a host that is served. Otherwise a client chooses it.
    mutating func checkHostVariable(of route: RouteSettings, under settings: Settings, in node: Node) {
        guard route.host == nil, settings.proxy.hosts.isEmpty else { return }
        if route.redirect?.target?.uses(.host) == true, let to = node["redirect"]?["to"] {
            warn(to.position, Template.unboundHost("set `hosts`, or the route's `host`, to bound it"))
        }
        warnOfHost(
            in: route.requestFields, of: node["request-headers"], "set `hosts`, or the route's `host`, to bound it")
        warnOfHost(
            in: route.responseFields, of: node["response-headers"], "set `hosts`, or the route's `host`, to bound it")
    }

    /// The same for the rules of all routes.
    mutating func checkHostVariable(of settings: Settings, in root: Node?) {
        guard settings.proxy.hosts.isEmpty else { return }
        warnOfHost(in: settings.proxy.requestFields, of: root?["request-headers"], "set `hosts` to bound it")
        warnOfHost(in: settings.proxy.responseFields, of: root?["response-headers"], "set `hosts` to bound it")
    }

    /// - Parameter node: of the changes; a line that it does not have comes from a variable of the environment.
    private mutating func warnOfHost(in changes: FieldChanges, of node: Node?, _ remedy: String) {
        for (verb, lines) in [("set", changes.set), ("add", changes.add)] {
            for line in lines where line.value.uses(.host) {
                guard let value = node?[verb]?[line.name], value.string == line.value.text else { continue }
                warn(value.position, Template.unboundHost(remedy))
            }
        }
    }
}

extension Settings {
    /// The same warning for rules that a variable of the environment gives.
    func unboundHosts(in variables: Variables) -> [Mistake] {
        guard proxy.hosts.isEmpty else { return [] }
        return [("request-headers", proxy.requestFields), ("response-headers", proxy.responseFields)].compactMap {
            key, changes in
            guard let name = variables.name(forKey: key),
                (changes.set + changes.add).contains(where: { $0.value.uses(.host) })
            else { return nil }
            return Mistake(path: name, position: nil, message: Template.unboundHost("set `hosts` to bound it"))
        }
    }
}

extension Template {
    fileprivate static func unboundHost(_ remedy: String) -> String {
        "`${host}` may be any host that a client names; \(remedy)"
    }
}

extension RouteSettings {
    /// The requests that a redirect of this route with such a `Location` makes, as a route for them; `nil` if they may
    /// go elsewhere.
    fileprivate func place(ledToBy text: String) -> RouteSettings? {
        var place = self
        var path = text[...]
        if let end = text.firstRange(of: "://") {
            let scheme = text[..<end.lowerBound]
            if scheme != "${scheme}" { place.scheme = ClientScheme.allCases.first { "\($0.name)" == scheme } }
            if let own = self.scheme, place.scheme != own { return nil }
            let rest = text[end.upperBound...]
            let start = ["/", "?", "#", "${target}", "${path}"].compactMap { rest.firstRange(of: $0)?.lowerBound }.min()
            let host = rest[..<(start ?? rest.endIndex)]
            path = rest[(start ?? rest.endIndex)...]
            if host != "${host}" {
                // Another host may be that of another server, and so may another port.
                guard case .value(let named) = ScalarSyntax<HostPattern>.host.parse(String(host)), self.host != nil
                else { return nil }
                place.host = named
            }
        }
        let known = path.firstRange(of: "${")?.lowerBound ?? path.endIndex
        let rest = path[known...]
        path = path[..<known]
        if let end = path.firstIndex(where: { "?#".contains($0) }) {
            place.path = String(path[..<end])
        } else if rest.isEmpty || rest.hasPrefix("${target}") || rest.hasPrefix("${path}") {
            place.path = String(path)
        } else {
            // A value that is not known continues the path.
            place.path = String(path[...(path.lastIndex(of: "/") ?? path.startIndex)])
        }
        if place.path.isEmpty {
            // A path as it was asked, or none.
            place.path = rest.isEmpty ? "/" : self.path
        }
        return place
    }
}
