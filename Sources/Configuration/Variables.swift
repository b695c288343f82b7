/// The environment variables that set keys, between the file and the flags: `COALESCED_STORAGE_MEMORY` sets
/// `storage.memory`. Keys of single upstreams and routes have no variable.
package struct Variables: Sendable {
    /// The beginning of the names of all variables.
    package static let prefix = "COALESCED_"
    /// Variables of the program itself, and of its tests.
    private static let others = ["COALESCED_LOADED_ANEW", "COALESCED_PROGRAM", "COALESCED_HANDED_ON"]
    private static let tests = "COALESCED_TEST_"

    /// Whether Kubernetes makes such a variable for a service named coalesced, or coalesced-…, in each container of its
    /// namespace: `COALESCED_SERVICE_HOST`, `COALESCED_SERVICE_PORT_HTTP`, `COALESCED_PORT_80_TCP_ADDR`. A
    /// `COALESCED_PORT` is one only with a URL, as Kubernetes gives it: 8080 is meant for a key.
    private static func isOfKubernetes(_ name: String, _ value: String) -> Bool {
        name.contains(#/^COALESCED(_\w+)?_(SERVICE_(HOST|PORT(_\w+)?)|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$/#)
            || name.hasSuffix("_PORT") && value.contains(#/^(tcp|udp|sctp):\/\//#)
    }

    private struct Target: Sendable {
        let path: String
        let set: @Sendable (String, inout Settings) throws(ValueMistake) -> Void
    }

    /// By the variable's name.
    private static let targets: [String: Target] = {
        var targets: [String: Target] = [:]
        func add(_ key: Key<Settings>, _ path: String) {
            if let set = key.set { targets[name(of: path)] = Target(path: path, set: set) }
            for child in key.children { add(child, "\(path).\(child.name)") }
        }
        for key in KeyTable.all { add(key, key.name) }
        return targets
    }()

    /// Ordered by name.
    private let values: [(name: String, value: String)]

    /// - Parameter environment: variables that do not begin with `prefix` mean nothing here.
    package init(_ environment: [String: String] = [:]) {
        values = environment.filter { name, value in
            name.hasPrefix(Self.prefix) && !Self.others.contains(name) && !name.hasPrefix(Self.tests)
                && !Self.isOfKubernetes(name, value)
        }.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    }

    private static func name(of path: String) -> String {
        prefix + String(path.map { $0 == "." || $0 == "-" ? "_" : $0 }).uppercased()
    }

    /// The names of all variables that set a key, with the key.
    package static var all: [(name: String, key: String)] {
        targets.map { ($0.key, $0.value.path) }.sorted { $0.name < $1.name }
    }

    /// The variable that sets the key at `path`, or the list or map that it is in; `nil` if there is none in this
    /// environment.
    package func name(forKey path: String) -> String? {
        var path = path.prefix { $0 != "[" }
        while true {
            let name = Self.name(of: String(path))
            if Self.targets[name]?.path == String(path) { return values.contains { $0.name == name } ? name : nil }
            guard let dot = path.lastIndex(of: ".") else { return nil }
            path = path[..<dot]
        }
    }

    /// - Returns: the values that are wrong, and the variables that set no key.
    func apply(to settings: inout Settings) -> (wrong: [Mistake], unknown: [Mistake]) {
        var wrong: [Mistake] = [], unknown: [Mistake] = []
        for (name, value) in values {
            guard let target = Self.targets[name] else {
                let near = Spelling.nearest(to: name, among: Array(Self.targets.keys))
                unknown.append(
                    Mistake(
                        path: Spelling.shown(name), position: nil,
                        message: near.map { "no key has this variable; did you mean `\($0)`?" }
                            ?? "no key has this variable; remove it, or name a key such as `\(Self.name(of: "storage.memory"))`"
                    ))
                continue
            }
            do throws(ValueMistake) {
                try target.set(value, &settings)
                if target.path == "clients.max-connections" { settings.statesMaxConnections = true }
            } catch {
                wrong.append(
                    Mistake(path: name, position: nil, message: "`\(Spelling.shown(value))`: \(error)"))
            }
        }
        return (wrong, unknown)
    }
}
