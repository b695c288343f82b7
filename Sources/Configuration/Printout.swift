import Routing
import YAML

/// Where the value of a key comes from.
package final class Sources {
    private let file: (path: String, text: String)?
    private let variables: Variables
    private let flags: Overrides
    /// Where each key stands in the file, by the key's path, such as `clients.max-connections` or `upstreams[0].name`.
    private lazy var places = file.map { Configuration.places(in: $0.text) } ?? [:]

    /// - Parameter file: its path and text; `nil` if there is none.
    package init(file: (path: String, text: String)?, variables: Variables, flags: Overrides) {
        self.file = file
        self.variables = variables
        self.flags = flags
    }

    /// The place at which the operator gave the value: `file:line:column`, a variable or a flag; `nil` for a default.
    package func place(ofKey path: String) -> String? {
        if let place = flags.flag(forKey: path) ?? variables.name(forKey: path) { return place }
        // A list of one item may stand there without being a list.
        guard let file, let position = (places[path] ?? places[path.replacing("[0]", with: "")])?.key else {
            return nil
        }
        return "\(file.path):\(position.line):\(position.column)"
    }
}

extension Overrides {
    /// The flag that sets the key at `path`; `nil` if it was not given.
    func flag(forKey path: String) -> String? {
        switch path {
        case _ where path.hasPrefix("tls.certificates"):
            identity.map { _ in path.hasSuffix(".key") ? "--tls-key" : "--tls-certificate" }
        case _ where path.prefix { $0 != "[" } == "listen": listeners.isEmpty ? nil : "--listen"
        case "upstreams[0].servers": servers.isEmpty ? nil : "--upstream"
        case "shared.engine": engines.isEmpty ? nil : "--shared"
        case "admin.address": admin.map { _ in "--admin" }
        case "workers": workers.map { _ in "--workers" }
        case "storage.memory": memory.map { _ in "--memory" }
        case "log-level": logLevel.map { _ in "--log-level" }
        case "access-log.target": accessLog.map { _ in "--access-log" }
        default: nil
        }
    }
}

extension Configuration {
    /// Where each key stands in `text`, by its path.
    static func places(in text: String) -> [String: Node.Place] {
        guard case .success(let document) = Document.parse(withoutMark(text)) else { return [:] }
        return document.root?.places ?? [:]
    }

    /// The lines of a file that gives `settings`: every key that has an effect, and behind it where its value comes
    /// from. Passwords are masked.
    package static func printout(_ settings: Settings, from sources: Sources) -> [String] {
        let lines = DefaultFile.lines(of: KeyTable.all, in: settings).filter { line in
            let content = line.drop { $0 == " " }
            return !content.isEmpty && content.first != "#"
        }
        // The keys of each line, the outermost first: a line may have a whole map.
        let keys = Dictionary(grouping: places(in: lines.joined(separator: "\n")), by: \.value.key.line)
            .compactMapValues { $0.min { $0.value.key < $1.value.key }?.key }
        return lines.enumerated().compactMap { index, line in
            guard var key = keys[index + 1] else { return Spelling.masked(line) }
            if settings.ignores(key) { return nil }
            var shown = Spelling.masked(line)
            if line.hasSuffix(": default"), let inherited = inherited(by: key, in: settings) {
                key = inherited.key
                shown = line.dropLast("default".count) + inherited.value
            }
            if line.hasSuffix(":") { return shown }
            let padding = String(repeating: " ", count: max(1, 44 - shown.count))
            return "\(shown)\(padding)# \(sources.place(ofKey: key) ?? "default")"
        }
    }

    /// The key whose value a route has that does not set its own, and this value.
    private static func inherited(by key: String, in settings: Settings) -> (key: String, value: String)? {
        let name = key.split(separator: ".").last.map(String.init) ?? key
        let path =
            switch name {
            case "cache": "caching.enabled"
            case "coalesce": "coalescing.enabled"
            case "share-across-cookies": "coalescing.\(name)"
            default: "caching.\(name)"
            }
        let names = path.split(separator: ".")
        let group = KeyTable.all.first { $0.name == names[0] }
        guard let value = group?.children.first(where: { $0.name == names[1] })?.write(settings), value.count == 1
        else { return nil }
        return (path, value[0])
    }
}

extension Settings {
    /// Whether a key of a route has no effect, since the route answers itself.
    fileprivate func ignores(_ key: String) -> Bool {
        guard let match = key.firstMatch(of: #/^routes\[(\d+)\]\.([^.\[]+)/#), let route = Int(match.1),
            proxy.routes.indices.contains(route)
        else { return false }
        return proxy.routes[route].isAnsweredHere && !RouteKeys.ofOwnAnswers.contains(String(match.2))
    }
}

extension Node {
    /// Where a key and its value stand.
    struct Place {
        let key: Position
        let value: Position
    }

    /// The places of all keys, by their paths.
    var places: [String: Place] { Dictionary(places(under: ""), uniquingKeysWith: { first, _ in first }) }

    private func places(under path: String) -> [(String, Place)] {
        switch self {
        case .scalar: []
        case .list(let list): list.items.enumerated().flatMap { $1.places(under: "\(path)[\($0)]") }
        case .mapping(let mapping):
            mapping.pairs.flatMap { key, value -> [(String, Place)] in
                guard let name = key.string else { return [] }
                let path = path.isEmpty ? name : "\(path).\(name)"
                return [(path, Place(key: key.position, value: value.position))] + value.places(under: path)
            }
        }
    }
}
