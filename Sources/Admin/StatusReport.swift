import Bytes
import Coalescing
import Libevent
import Proxy
import Storage
import Telemetry

/// The proxy's present state, as JSON for people and scripts.
struct StatusReport {
    let text: ByteBuffer

    init(_ server: ProxyServer) {
        let now = server.snapshot
        var json = JSONText()
        json.object { json in
            json.member("state", now.isDraining ? "draining" : "running")
            json.array("listeners", now.addresses) { json, address in json.value("\(address)") }
            json.member("workers", now.workers)
            json.object("clients") { json in
                json.member("connections", Int(clamping: now.counters.clientConnectionsOpen))
            }
            json.object("memory") { json in
                json.member("limit", now.memoryLimit)
                json.member("stored", now.storage.bytes)
                json.member("in_flight", now.inFlightBytes)
            }
            json.object("store") { json in
                json.member("responses", now.storage.responses)
                json.member("resources", now.storage.resources)
                json.member("unshareable", now.storage.markers)
                json.member("evicted", now.storage.evictedFromSmall + now.storage.evictedFromMain)
            }
            json.array("upstreams", now.upstreams) { json, upstream in
                json.object { json in
                    json.member("name", upstream.name)
                    json.member("in_flight", upstream.operations.inFlight)
                    json.member("queued", upstream.operations.queued)
                    json.member("started", upstream.operations.started)
                    json.member("joined", upstream.operations.joined)
                    json.member("joined_late", upstream.operations.joinedLate)
                    json.member("released", upstream.operations.released)
                    json.member("replaced", upstream.operations.replaced)
                    json.member("refused", upstream.operations.refused)
                }
            }
            json.array("fetches", server.fetchesInFlight) { json, fetch in
                json.object { json in
                    json.member("number", Int(clamping: fetch.number))
                    json.member("upstream", fetch.upstream)
                    json.member("key", fetch.key)
                    json.member("phase", fetch.phase)
                    json.member("waiters", fetch.waiters)
                }
            }
        }
        json.bytes.append("\n")
        text = json.bytes
    }
}
