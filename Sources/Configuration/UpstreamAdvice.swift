import Upstream
import YAML

/// Warnings about settings of upstreams that have no effect, or not the one that may be meant.
enum UpstreamAdvice {
    static func give(on upstreams: [UpstreamSettings], in root: Node?, _ reader: inout Reader) {
        let nodes = root?.items(of: "upstreams") ?? []
        // If the file has a mistake, the indices of the nodes and of the settings may not match.
        guard reader.notes.isEmpty, nodes.count == upstreams.count else { return }
        for (upstream, node) in zip(upstreams, nodes) {
            warnOfSharing(upstream, node, &reader)
            warnOfWeights(upstream, node, &reader)
            UpstreamTLSKeys.advise(on: upstream, node, &reader)
        }
    }

    /// Warns of keys that need several servers. A name may have several addresses, each of which is a server.
    private static func warnOfSharing(_ upstream: UpstreamSettings, _ node: Node, _ reader: inout Reader) {
        guard upstream.servers.count == 1, upstream.servers[0].address != nil else { return }
        let keys = [
            ("balance", upstream.balance != .roundRobin),
            ("retry", upstream.retry != RetrySettings() && upstream.retry.attempts > 0),
            ("slow-start", upstream.slowStart > .zero),
        ]
        for (key, isMeant) in keys where isMeant {
            guard let position = node[key]?.position else { continue }
            reader.warn(
                position,
                "`\(key)` is about several servers, and `\(upstream.name)` has one; add another, or remove `\(key)`")
        }
    }

    private static func warnOfWeights(_ upstream: UpstreamSettings, _ node: Node, _ reader: inout Reader) {
        for servers in [upstream.servers.filter { !$0.isBackup }, upstream.servers.filter(\.isBackup)] {
            guard let weight = servers.first?.weight, weight > 1, servers.allSatisfy({ $0.weight == weight }),
                let position = node["servers"]?.position
            else { continue }
            reader.warn(
                position,
                (servers.count == 1
                    ? "the weight of \(servers[0]) has no effect, since no other server shares its requests"
                    : "servers of the same weight (\(weight)) share as if they had none")
                    + "; remove `weight`, or give another server a different one")
        }
    }
}
