import Bytes
import HTTPSemantics
import Routing
import Storage
import Telemetry
import Upstream
import YAML

/// Reads the nodes of one file according to a table of keys, and notes all mistakes.
struct Reader {
    struct Note {
        var position: Position
        var message: String
    }

    /// The most notes about repeated keys in one mapping; enough for an operator to work on.
    private static let mostRepeated = 20

    private(set) var notes: [Note] = []
    /// Notes on values that are valid but may not be intended.
    private(set) var warnings: [Note] = []
    /// The upstreams that routes name. They may come later in the file, so they are looked up at the end.
    private var upstreamReferences: [(name: String, position: Position)] = []
    /// The fields of keys. Whether they are allowed depends on `forwarding`, so they are checked at the end.
    private var keyFields: [(name: String, position: Position)] = []
    private let document: Document

    init(_ document: Document) { self.document = document }

    mutating func note(_ position: Position, _ message: String) {
        notes.append(Note(position: position, message: message))
    }

    mutating func warn(_ position: Position, _ message: String) {
        warnings.append(Note(position: position, message: message))
    }

    /// The advice for a value whose first character means something else in YAML.
    func indicatorAdvice(for node: Node) -> String? { document.indicatorAdvice(for: node) }

    mutating func refer(toUpstream name: String, at position: Position) {
        upstreamReferences.append((name, position))
    }

    mutating func refer(toKeyField name: String, at position: Position) {
        keyFields.append((name, position))
    }

    /// Reads a mapping into `root`. An empty group, as when all its keys are commented out, is allowed.
    /// - Parameter title: names the mapping in a message.
    mutating func read<Root>(_ node: Node, as keys: [Key<Root>], into root: inout Root, called title: String) {
        if node.isNothing { return }
        guard case .mapping(let mapping) = node else {
            return note(node.position, "\(title) must be keys and values (`key: value`), not \(node.kind)")
        }
        let entries = entries(of: mapping)
        for entry in entries {
            if let key = keys.first(where: { $0.name == entry.name }) {
                key.read(entry.value, &root, &self)
            } else {
                note(entry.position, Self.unknown(entry.name, among: keys))
            }
        }
        for key in keys where key.isRequired && !entries.contains(where: { $0.name == key.name }) {
            note(node.position, "\(title) needs `\(key.name)`; add it")
        }
    }

    /// The entries of a mapping. Notes keys that are not words, and repeated keys.
    mutating func entries(of mapping: Node.Mapping) -> [(name: String, position: Position, value: Node)] {
        var entries: [(name: String, position: Position, value: Node)] = []
        var lines: [String: Int] = [:]
        var repeated = 0
        for (keyNode, value) in mapping.pairs {
            guard let name = keyNode.string else {
                note(keyNode.position, "a key must be a word, not \(keyNode.kind)")
                continue
            }
            if let former = lines.updateValue(keyNode.position.line, forKey: name) {
                repeated += 1
                guard repeated <= Self.mostRepeated else {
                    note(
                        keyNode.position,
                        "more than \(Self.mostRepeated) keys are given twice in one place, such as `\(Spelling.shown(name))` here; remove one of each two"
                    )
                    break
                }
                note(
                    keyNode.position,
                    "`\(Spelling.shown(name))` is already given on line \(former); remove one of them")
            }
            entries.append((name, keyNode.position, value))
        }
        return entries
    }

    private static func unknown<Root>(_ name: String, among keys: [Key<Root>]) -> String {
        let shown = Spelling.shown(name)
        if let near = Spelling.nearest(to: name, among: keys.map(\.name)) {
            return "`\(shown)` is not known; did you mean `\(near)`?"
        }
        if let home = KeyTable.all.first(where: { $0.children.contains { $0.name == name } }) {
            return "`\(shown)` does not belong here; put it under `\(home.name)`"
        }
        if let list = KeyTable.lists.first(where: { $0.keys.contains(name) }) {
            return "`\(shown)` does not belong here; put it in an element of `\(list.name)`"
        }
        return
            "`\(shown)` is unknown; remove it. Keys allowed here: \(keys.map { "`\($0.name)`" }.joined(separator: ", "))"
    }

    /// Checks the fields of keys. A key can contain only fields that upstreams receive as the client sent them: the
    /// same rule as `CachingPolicy.sight`.
    mutating func checkKeyFields(of settings: Settings) {
        let forwarding = settings.proxy.forwarding
        for field in keyFields {
            let name = ByteSlice(field.name)
            let reason: String? =
                switch KnownField.recognise(name.span) {
                case .xForwardedFor where forwarding.sendsXForwarded:
                    "the proxy adds the client's address to it, which is not part of the key; remove it, or turn `forwarding.x-forwarded` off"
                case .via where forwarding.viaName != nil:
                    "the proxy adds its own name and the client's HTTP version to it; remove it, or turn `forwarding.via` off"
                case .host: "it is part of every key already; remove it"
                case .connection, .keepAlive, .proxyConnection, .te, .upgrade, .http2Settings, .transferEncoding,
                    .contentLength:
                    "it is a connection field, which is never forwarded; remove it"
                case .other where !forwarding.sendsOddNames && !name.span.isPlainName:
                    "fields with such names are not forwarded; remove it, or turn `forwarding.odd-field-names` on"
                default: nil
                }
            if let reason { note(field.position, "`headers: \(field.name)`: \(reason)") }
        }
    }

    /// Notes a `max-object-size` for which another key leaves too little memory.
    mutating func checkStorage(of settings: Settings, in root: Node?) {
        let storage = settings.storage
        guard let node = root?["storage"]?["max-object-size"],
            storage.maxObjectSize > storage.memory * storage.inUsePercent / 100
        else { return }
        let size = ScalarSyntax.memory.write
        note(
            node.position,
            "no response larger than `in-flight-share` (\(storage.inUsePercent)%) of `memory` (\(size(storage.memory))) is stored, "
                + "that is \(size(storage.inUseLimit)); lower `max-object-size`, or raise `memory` or `in-flight-share`"
        )
    }

    /// The access log must not be the configuration file.
    mutating func checkAccessLog(of settings: Settings, in root: Node?, besides path: String) {
        guard settings.accessLog.target == .file(path: path) else { return }
        note(
            root?["access-log"]?["target"]?.position ?? Position(line: 1, column: 1),
            "this is the configuration file itself; choose another file for the log")
    }

    /// The admin listener must have an address of its own.
    mutating func checkListeners(of settings: Settings, in root: Node?) {
        checkProxiedListeners(of: settings, in: root)
        guard let mistake = settings.listenerMistake else { return }
        // If the file has neither key, both addresses are flags or defaults.
        let node = root?["admin"]?["address"] ?? root?["listen"]
        note(node?.position ?? Position(line: 1, column: 1), mistake)
    }

    /// Only trusted proxies may connect to a listener with the PROXY protocol.
    private mutating func checkProxiedListeners(of settings: Settings, in root: Node?) {
        guard let listener = settings.proxy.listen.first(where: \.isProxied),
            settings.proxy.clients.trustedProxies.isEmpty
        else { return }
        note(
            root?["listen"]?.position ?? Position(line: 1, column: 1),
            "nobody may connect to \(listener.address): `proxy-protocol` is for the addresses in `clients.trusted-proxies`, which is empty; name the load balancers there"
        )
    }

    /// An upstream's server must not be this proxy.
    mutating func checkServers(of settings: Settings, in root: Node?) {
        guard let mistake = settings.serverMistake else { return }
        let nodes = root?.items(of: "upstreams") ?? []
        // If an item of the list has a mistake, the indices of the nodes and of the settings may not match.
        guard nodes.isEmpty || nodes.count == settings.upstreams.count else { return }
        // If the file does not name the server, it is a flag or the default.
        let node = nodes.isEmpty ? nil : nodes[mistake.upstream]["servers"]
        note((node ?? root?["listen"])?.position ?? Position(line: 1, column: 1), mistake.message)
    }

    /// Every route must get requests. A route after one that matches all of its requests is misplaced. A route for a
    /// host that is not served changes nothing for other requests and may be kept for later use, so it only gives a
    /// warning.
    mutating func checkRoutes(of settings: Settings, in root: Node?) {
        let (routes, hosts) = (settings.proxy.routes, settings.proxy.hosts)
        let nodes = root?.items(of: "routes") ?? []
        // If the file has a mistake, the indices of the nodes and of the settings may not match.
        guard notes.isEmpty, nodes.count == routes.count else { return }
        // There may be thousands of routes and hosts, so never compare each with all others.
        let (served, aboveServed) = (Set(hosts), Set(hosts.flatMap(\.covering)))
        var earlierRoutes = RouteIndex()
        for (index, route) in routes.enumerated() {
            checkCookies(of: route, under: settings, in: nodes[index])
            checkWrittenFields(of: route, under: settings, in: nodes[index])
            checkScheme(of: route, under: settings, in: nodes[index])
            checkOwnAnswer(of: route, after: earlierRoutes, in: nodes[index])
            checkHostVariable(of: route, under: settings, in: nodes[index])
            if let host = route.host, !hosts.isEmpty, !aboveServed.contains(host),
                served.isDisjoint(with: host.covering)
            {
                warn(
                    (nodes[index]["host"] ?? nodes[index]).position,
                    "requests for `\(host.text)` get 421 because it is not in `hosts`; add it there, or remove this route"
                )
            } else if let earlier = earlierRoutes.first(covering: route) {
                note(
                    nodes[index].position,
                    "the route on line \(nodes[earlier].position.line) already matches all requests of this one; "
                        + (route.covers(routes[earlier]) ? "remove one of them" : "move this one before it"))
            }
            earlierRoutes.add(route, number: index)
        }
    }

    /// Every upstream should get requests. Requests that match no route go to the first upstream.
    mutating func checkUse(of settings: Settings, in root: Node?) {
        let nodes = root?.items(of: "upstreams") ?? []
        // If the file has a mistake, the indices of the nodes and of the settings may not match.
        guard notes.isEmpty, nodes.count == settings.upstreams.count else { return }
        let routes = settings.proxy.routes
        var used = Set(routes.map(\.upstream))
        if let first = settings.upstreams.first, !routes.contains(where: \.takesEverything) { used.insert(first.name) }
        for (index, upstream) in settings.upstreams.enumerated() where !used.contains(upstream.name) {
            warn(
                (nodes[index]["name"] ?? nodes[index]).position,
                "no route uses upstream `\(upstream.name)`, so it gets no requests; add a route, or remove it")
        }
    }

    /// No request has the scheme https if no listener speaks TLS, and no trusted proxy may say so.
    private mutating func checkScheme(of route: RouteSettings, under settings: Settings, in node: Node) {
        guard route.scheme == .https, settings.proxy.clients.trustedProxies.isEmpty,
            settings.proxy.secureListeners.isEmpty
        else { return }
        warn(
            (node["scheme"] ?? node).position,
            "no request is for https: no listener speaks TLS, and `clients.trusted-proxies` is empty; add `https://0.0.0.0:443` to `listen`, or name the server there that terminates TLS"
        )
    }

    /// A cookie with which requests bypass the cache must not be part of the key: no stored response would differ by
    /// it. And an unsafe request with that cookie would not invalidate the responses that other clients get.
    private mutating func checkCookies(of route: RouteSettings, under settings: Settings, in node: Node) {
        guard let cookies = node["key"]?["cookies"] else { return }
        let passing = route.passCookies ?? settings.proxy.caching.passCookies
        for cookie in cookies.elements {
            guard let name = cookie.string,
                passing.contains(where: { $0.matches(ByteSlice(name).span) })
            else { continue }
            note(
                cookie.position,
                "`cookies: \(name)`: requests with this cookie bypass the cache, so it never matters here; remove it here or from `pass-cookies`"
            )
        }
    }

    /// A field that a rule writes for all requests must not be part of the key: the origin does not get the client's.
    private mutating func checkWrittenFields(of route: RouteSettings, under settings: Settings, in node: Node) {
        guard let fields = node["key"]?["headers"] else { return }
        let written = [settings.proxy.requestFields, route.requestFields].flatMap {
            $0.set.map { $0.name.lowercased() } + $0.remove
        }
        for field in fields.elements {
            guard let name = field.string, written.contains(name.lowercased()) else { continue }
            note(
                field.position,
                "`headers: \(name)`: a rule of `request-headers` sets or removes it, so the upstream does not get the client's; remove it here or there"
            )
        }
    }

    /// There must be an upstream, in the file or by a flag, and every upstream that a route names must exist. The
    /// installed file has an empty list.
    mutating func checkUpstreams(of settings: Settings, in root: Node?) {
        guard !settings.upstreams.isEmpty else {
            // A list whose items all have mistakes is not empty; these mistakes are noted already.
            guard let node = root?["upstreams"], node.elements.isEmpty else { return }
            return note(
                node.position,
                "`upstreams` is empty; name the servers to forward to, such as `[{name: app, servers: [http://127.0.0.1:9000]}]`"
            )
        }
        // Keep one of each name, though a mistake may have given it to two upstreams.
        var known: Set<String> = []
        let names = settings.upstreams.map(\.name).filter { known.insert($0).inserted }
        for reference in upstreamReferences where !known.contains(reference.name) {
            let near = Spelling.nearest(to: reference.name, among: names)
            note(
                reference.position,
                "there is no upstream `\(Spelling.shown(reference.name))`; "
                    + (near.map { "did you mean `\($0)`?" } ?? "name one of: \(names.joined(separator: ", "))"))
        }
    }
}

extension RouteSettings {
    /// Whether the route matches all requests.
    fileprivate var takesEverything: Bool {
        host == nil && scheme == nil && path == RouteSettings(upstream: "").path
    }
}

extension Node {
    /// The groups of a list, without empty ones.
    func items(of key: String) -> [Node] {
        guard case .list(let list)? = self[key] else { return [] }
        return list.items.filter { !$0.isNothing }
    }

    /// Where the value of a key is, or the innermost group or item around it that is there.
    /// - Parameter path: such as `tls.certificates[0].key`.
    /// - Returns: `nil` if nothing of it is there.
    func position(ofKey path: String) -> Position? {
        var found: Node?
        var node = self
        for part in path.split(whereSeparator: { ".[".contains($0) }) {
            let next: Node?
            if part.hasSuffix("]"), let index = Int(part.dropLast()) {
                next = node.elements.indices.contains(index) ? node.elements[index] : nil
            } else {
                next = node[String(part)]
            }
            guard let next else { break }
            (node, found) = (next, next)
        }
        return found?.position
    }

    /// The items of a list. A node that is not a list counts as a list of that node.
    var elements: [Node] {
        if case .list(let list) = self { list.items } else { [self] }
    }

    var position: Position { Position(mark) }

    /// Whether this is `key:` without a value, or `null`.
    var isNothing: Bool {
        guard case .scalar(let scalar) = self, scalar.isPlain else { return false }
        return ["", "~", "null"].contains(scalar.string)
    }

    var kind: String {
        switch self {
        case .scalar: isNothing ? "nothing" : "a single value"
        case .mapping: "keys and values"
        case .list: "a list"
        }
    }
}
