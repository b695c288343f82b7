import Bytes
import Coalescing
import Libevent
import Proxy
import Storage
import Telemetry
import Upstream

/// The proxy's present state, as JSON for people and scripts.
struct StatusReport {
    let text: ByteBuffer

    /// - Parameters:
    ///   - servers: the servers of each upstream, in the order of the configuration.
    ///   - loop: the control loop.
    init(_ server: ProxyServer, _ servers: [UpstreamServers], _ program: ProgramHistory, on loop: EventLoop) {
        let (now, time) = (server.snapshot, loop.now)
        var json = JSONText()
        json.object { json in
            json.member("version", program.version)
            json.member("state", now.isDraining ? "draining" : "running")
            json.member("uptime_seconds", JSONText.seconds(program.age(at: time)))
            if let reload = program.lastReload {
                json.object("last_reload") { json in
                    json.member("succeeded", reload.succeeded)
                    json.member("seconds", JSONText.seconds(time - reload.at))
                }
            }
            json.array("listeners", now.addresses) { json, address in json.value("\(address)") }
            json.member("workers", now.workers)
            json.object("clients") { json in
                json.member("connections", Int(clamping: now.counters.clientConnectionsOpen))
                json.member("limit", now.clientLimit)
            }
            json.object("memory") { json in
                json.member("limit", now.memoryLimit)
                json.member("stored", now.storage.bytes)
                json.member("in_flight", now.inFlightBytes)
            }
            json.object("store") { json in
                json.member("responses", now.storage.responses)
                json.member("resources", now.storage.resources)
                json.member("unshareable", now.storage.markedKeys)
                json.member("evicted", now.storage.evictedFromSmall + now.storage.evictedFromMain)
            }
            if let tls = now.tls { json.add(tls, at: loop.wallClockSeconds) }
            if let tier = now.tier {
                json.object("shared") { json in
                    json.array("engines", tier.engines) { json, engine in json.value(engine) }
                    json.member("connections", tier.connections)
                    json.array("nodes", tier.nodes) { json, node in
                        json.object { json in
                            json.member("node", node.name)
                            json.member("state", node.state.rawValue)
                            if let reason = node.reason { json.member("reason", reason) }
                            json.member("connections", node.connections)
                            json.member("wanted", node.wanted)
                            json.member("breakers_open", node.openBreakers)
                        }
                    }
                    json.member("knows_purges", tier.knowsPurges)
                    json.member("purge_lag_seconds", JSONText.seconds(tier.purgeLag))
                    json.member("known_purges", tier.knownPurges)
                    json.member("pending_purges", tier.pendingPurges)
                    json.array("events", TierEvent.allCases) { json, event in
                        json.object { json in
                            json.member("event", event.name)
                            json.member("count", Int(clamping: tier.counts[event]))
                        }
                    }
                    json.member("bytes_read", Int(clamping: tier.counts.bytesRead))
                    json.member("bytes_written", Int(clamping: tier.counts.bytesWritten))
                }
            }
            json.array("upstreams", Array(zip(now.upstreams, servers))) { json, pair in
                let (upstream, servers) = pair
                json.object { json in
                    json.member("name", upstream.name)
                    json.member("slots", upstream.slots)
                    json.member("in_flight", upstream.operations.inFlight)
                    json.member("queued", upstream.operations.queued)
                    json.member("started", upstream.operations.started)
                    json.member("joined", upstream.operations.joined)
                    json.member("joined_late", upstream.operations.joinedLate)
                    json.member("released", upstream.operations.released)
                    json.member("replaced", upstream.operations.replaced)
                    json.member("refused", upstream.operations.refused)
                    json.array("servers", servers.servers) { json, server in
                        json.add(server, of: servers.settings, at: time)
                    }
                }
            }
            json.array("fetches", server.fetchesInFlight) { json, fetch in
                json.object { json in
                    json.member("number", Int(clamping: fetch.number))
                    json.member("upstream", fetch.upstream)
                    json.member("key", fetch.key)
                    json.member("phase", fetch.phase)
                    json.member("waiters", fetch.waiters)
                    json.member("seconds", JSONText.seconds(time - fetch.made))
                    if let received = fetch.received { json.member("bytes", received) }
                }
            }
        }
        json.bytes.append("\n")
        text = json.bytes
    }
}

extension JSONText {
    fileprivate mutating func add(_ server: ServerReport, of upstream: UpstreamSettings, at time: Int64) {
        object { json in
            json.member("server", "\(server.server)")
            json.member("weight", server.server.weight)
            json.member("backup", server.server.isBackup)
            if let leading = server.leading { json.add(leading, of: upstream, at: time) }
            json.member("in_use", server.inUse)
            json.member("idle", server.idle)
            if upstream.balance == .leastRequests { json.member("in_flight", server.requestsInFlight) }
            let found = server.places.filter { !$0.state.place.addresses.isEmpty }
            guard server.server.address == nil, !found.isEmpty else { return }
            json.array("addresses", found) { json, one in
                json.object { json in
                    json.member("address", one.state.place.addresses.map(\.description).joined(separator: ", "))
                    json.add(one.state, of: upstream, at: time)
                    json.member("in_use", one.inUse)
                    json.member("idle", one.idle)
                    if upstream.balance == .leastRequests {
                        json.member("in_flight", one.state.place.requestsInFlight)
                    }
                }
            }
        }
    }

    /// - Parameter now: seconds since 1970.
    fileprivate mutating func add(_ tls: TLSSnapshot, at now: Int64) {
        object("tls") { json in
            json.array("listeners", tls.addresses) { json, address in json.value("\(address)") }
            json.array("certificates", tls.certificates) { json, certificate in
                json.object { json in
                    json.member("certificate", certificate.path)
                    json.array("names", certificate.names) { json, name in json.value(name) }
                    json.member("not_after", Int(max(0, certificate.notAfter)))
                    json.member("expires_seconds", Int(max(0, certificate.notAfter - now)))
                }
            }
        }
    }

    private mutating func add(_ place: PlaceState, of upstream: UpstreamSettings, at time: Int64) {
        member("state", place.condition.rawValue)
        if let changed = place.changedAt { member("state_seconds", Self.seconds(time - changed)) }
        if let cause = place.cause, place.condition != .drained { member("reason", "\(cause)") }
        if let next = place.nextTry(upstream.health) { member("next_try_seconds", Self.seconds(next - time)) }
        guard let check = place.lastCheck else { return }
        object("last_check") { json in
            json.member("succeeded", check.outcome.isSuccess)
            if case .failure(let reason) = check.outcome { json.member("reason", reason) }
            json.member("seconds", Self.seconds(time - check.at))
        }
    }

    fileprivate static func seconds(_ nanoseconds: Int64) -> Int { Int(max(0, nanoseconds) / 1_000_000_000) }
}

extension PlaceState {
    /// When a request may find out whether the place is back, or about when a check does; `nil`: it gets requests, or is
    /// drained.
    fileprivate func nextTry(_ health: HealthSettings?) -> Int64? {
        switch condition {
        case .up, .slowStart, .drained: nil
        case .ejected, .probing: nextProbe
        case .down: lastCheck.flatMap { last in health.map { last.at + $0.interval.nanoseconds } }
        }
    }
}
