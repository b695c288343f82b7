import Proxy
import Telemetry
import Upstream

/// The metric families about the servers of upstreams.
extension [UpstreamServers] {
    func families() -> [MetricFamily] {
        [
            .gauge(
                "upstream_server_up", "1 if the server gets requests, at one of its addresses at least, otherwise 0.",
                samples { server in [([], server.leading?.condition.isInUse == false ? 0 : 1)] }),
            .gauge(
                "upstream_server_addresses", "Addresses of the server by state; a server without a name has one.",
                samples { server in
                    PlaceState.Condition.allCases.map { condition in
                        ([("state", condition.rawValue)], server.places.count { $0.state.condition == condition })
                    }
                }),
            .gauge(
                "upstream_server_connections", "Open connections to the server, by state.",
                samples { server in
                    [([("state", "in-use")], server.inUse), ([("state", "idle")], server.idle)]
                }),
            counter("upstream_ejections", "Ejections of servers, or of addresses of a name.", [([], .ejection)]),
            counter(
                "upstream_checks", "Checks of servers by outcome.",
                [([("outcome", "success")], .checkSuccess), ([("outcome", "failure")], .checkFailure)]),
            counter(
                "upstream_retries_refused", "Retries that were not made because of retry.budget.",
                [([], .refusedRetry)]),
            counter("upstream_no_server", "Requests for which no server was in use.", [([], .noServer)]),
        ]
    }

    private func counter(
        _ name: String, _ help: String, _ events: [(labels: [(name: String, value: String)], event: ServerEvent)]
    ) -> MetricFamily {
        .counter(
            name, help,
            flatMap { upstream in
                events.map { labels, event in
                    MetricSample([("upstream", upstream.settings.name)] + labels, .whole(upstream.events[event]))
                }
            })
    }

    /// The samples of each server, beginning with the labels that distinguish the server from the others.
    private func samples(_ values: (ServerReport) -> [(labels: [(name: String, value: String)], value: Int)])
        -> [MetricSample]
    {
        flatMap { upstream in
            upstream.servers.flatMap { server in
                values(server).map { labels, value in
                    MetricSample(
                        [("upstream", upstream.settings.name), ("server", "\(server.server)")] + labels,
                        .whole(UInt64(clamping: value)))
                }
            }
        }
    }
}
