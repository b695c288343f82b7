import Upstream
import YAML

extension ValueSyntax<[UpstreamServer]> {
    /// The most servers of an upstream: a choice may look at all of them.
    private static var most: Int { 1_000 }

    private static var keys: [Key<UpstreamServer>] {
        [
            Key("url", \.place, .server, isRequired: true, "Where it listens."),
            Key("weight", \.weight, .integer(1...1_000), "Its share of the requests."),
            Key("backup", \.isBackup, .flag, "Whether it is asked only while the others cannot be used."),
        ]
    }

    /// A list of servers, and of maps such as `{url: http://10.0.0.2:8000, weight: 2, backup: true}`. A single one needs
    /// no list.
    static var servers: Self {
        let (keys, server) = (keys, ValueSyntax<UpstreamServer>(.server))
        return ValueSyntax(write: { ["[\($0.map(text).joined(separator: ", "))]"] }) { node, name, reader in
            let nodes = node.elements
            guard (1...most).contains(nodes.count) else {
                reader.note(
                    node.position,
                    nodes.isEmpty
                        ? "`\(name)` is empty; give at least 1"
                        : "`\(name)` has \(nodes.count) entries; give at most \(most)")
                return nil
            }
            var servers: [UpstreamServer] = []
            var known: Set<UpstreamServer.Location> = []
            for node in nodes {
                var read = UpstreamServer(nowhere)
                if case .mapping = node {
                    reader.read(node, as: keys, into: &read, called: "a server")
                } else {
                    read = server.read(node, name, &reader) ?? read
                }
                servers.append(read)
                guard read.location != nowhere, !known.insert(read.location).inserted else { continue }
                let shown = Spelling.shown(ScalarSyntax.server.text(of: read))
                reader.note(
                    node.position,
                    "`\(name)` has `\(shown)` twice; remove one of them, or write `{url: \(shown), weight: 2}` once for a share twice as large"
                )
            }
            if servers.allSatisfy(\.isBackup) {
                reader.note(
                    node.position, "`\(name)` has only backups; remove `backup` from those that are to be asked first")
            }
            return servers.filter { $0.location != nowhere }
        }
    }

    /// Stands in for a location that has a mistake.
    private static var nowhere: UpstreamServer.Location { .unix(path: "") }

    private static func text(of server: UpstreamServer) -> String {
        let url = quoted(ScalarSyntax.server.text(of: server))
        let more =
            (server.weight == 1 ? [] : ["weight: \(server.weight)"]) + (server.isBackup ? ["backup: true"] : [])
        return more.isEmpty ? url : "{\((["url: \(url)"] + more).joined(separator: ", "))}"
    }
}

extension UpstreamServer {
    /// Where the server listens, and whether it speaks TLS.
    fileprivate var place: UpstreamServer {
        get { self }
        set { (location, isSecure) = (newValue.location, newValue.isSecure) }
    }
}
