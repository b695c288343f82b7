/// The proxy's state, from `/status`, as text for people. Members that an older program does not report are left out.
package enum StatusText {
    /// The number of fetches that are listed: the oldest ones.
    private static let listedFetches = 5

    /// - Parameters:
    ///   - status: the content of `/status`.
    ///   - width: the number of columns of the terminal.
    package static func lines(_ status: JSONValue, width: Int) -> [String] {
        var lines = [headline(status), ""]
        func add(_ title: String, _ text: String) {
            lines.append(title + String(repeating: " ", count: max(1, 12 - title.count)) + text)
        }
        add("listening", status["listeners"]?.elements.compactMap(\.string).joined(separator: ", ") ?? "-")
        add("workers", figure(status["workers"]))
        let (clients, limit) = (status["clients"]?["connections"], status["clients"]?["limit"])
        add("clients", figure(clients) + (limit == nil ? "" : " of \(figure(limit))"))
        add("memory", memory(status))
        if let tls = status["tls"] {
            let certificates = Certificates.lines(of: tls)
            add("tls", certificates.first ?? "no certificate")
            lines += certificates.dropFirst().map { String(repeating: " ", count: 12) + $0 }
        }
        if let tier = status["shared"] {
            let nodes = SharedTier.nodes(of: tier)
            add("shared", nodes.first ?? "no server was asked yet")
            lines += nodes.dropFirst().map { String(repeating: " ", count: 12) + $0 }
            lines += [SharedTier.purges(of: tier), SharedTier.events(of: tier)].map {
                String(repeating: " ", count: 14) + $0
            }
        }
        for upstream in status["upstreams"]?.elements ?? [] {
            let slots = upstream["slots"].map { " of \(figure($0))" } ?? ""
            add(
                "upstream",
                "\(name(of: upstream)): \(Wording.whole(running(upstream)))\(slots) fetches running, "
                    + "\(figure(upstream["queued"])) queued")
            let servers = upstream["servers"]?.elements.flatMap { server in
                let addresses = server["addresses"]?.elements ?? []
                // The row of an only address would repeat that of its server.
                return [row(server["server"], server, width)]
                    + (addresses.count > 1 ? addresses : []).map { row($0["address"], $0, width, indent: "  ") }
            }
            lines += TextTable(rows: servers ?? [], figures: 2..<4).lines.map { String(repeating: " ", count: 14) + $0 }
        }
        let fetches = Fetches.oldestFirst(status)
        add("fetches", fetches.isEmpty ? "none" : "\(fetches.count)")
        lines += Fetches.table(Array(fetches.prefix(listedFetches))).lines.map { "  " + $0 }
        if fetches.count > listedFetches { lines.append("  and \(fetches.count - listedFetches) more") }
        return lines.map { Wording.line($0, width: width) }
    }

    /// The program's version and state, and the outcome of the last reload.
    static func headline(_ status: JSONValue) -> String {
        var parts = ["coalesced \(status["version"]?.string ?? "")", status["state"]?.string ?? "-"]
        if let uptime = status["uptime_seconds"]?.number { parts[1] += " for \(Wording.duration(uptime))" }
        if let reload = status["last_reload"], let ago = reload["seconds"]?.number {
            let time = "\(Wording.duration(ago)) ago"
            parts.append(
                reload["succeeded"]?.isTrue == true
                    ? "reloaded \(time): ok" : "reload FAILED \(time): former settings stay")
        }
        return parts.joined(separator: ", ")
    }

    static func memory(_ status: JSONValue) -> String {
        let (memory, store) = (status["memory"], status["store"])
        func size(_ name: String) -> String { Wording.bytes(memory?[name]?.number ?? 0) }
        let used = (memory?["stored"]?.number ?? 0) + (memory?["in_flight"]?.number ?? 0)
        return
            "\(Wording.bytes(used)) of \(size("limit")): \(size("stored")) stored (\(figure(store?["responses"])) responses), "
            + "\(size("in_flight")) in flight"
    }

    /// The row of a server, or of one of its addresses. The condition comes right after the name, since the end of a line
    /// may be cut off.
    private static func row(_ name: JSONValue?, _ state: JSONValue, _ width: Int, indent: String = "") -> [String] {
        let more = [share(state), Servers.lastCheck(state)].compactMap(\.self).joined(separator: ", ")
        return [
            indent + Wording.name(name?.string ?? "-", width: max(16, width / 2 - 8) - indent.count),
            Servers.condition(state), "\(figure(state["in_use"])) in use", "\(figure(state["idle"])) idle",
        ] + (more.isEmpty ? [] : [more])
    }

    /// The share of a server among the others, unless it is that of most.
    private static func share(_ server: JSONValue) -> String? {
        let weight = server["weight"]?.number ?? 1
        let words =
            (weight == 1 ? [] : ["weight \(Wording.whole(weight))"])
            + (server["backup"]?.isTrue == true ? ["backup"] : [])
        return words.isEmpty ? nil : words.joined(separator: ", ")
    }

    /// The number of fetches that have a slot.
    static func running(_ upstream: JSONValue) -> Double {
        (upstream["in_flight"]?.number ?? 0) - (upstream["queued"]?.number ?? 0)
    }

    static func name(of upstream: JSONValue) -> String { upstream["name"]?.string ?? "-" }

    static func figure(_ value: JSONValue?) -> String { value?.number.map(Wording.whole) ?? "-" }
}

/// The certificates of listeners with TLS, as `/status` lists them.
enum Certificates {
    /// Seconds before its end from which on a certificate is conspicuous: renewed in time, it has 30 days left.
    private static let soon: Double = 14 * 86_400

    /// `/etc/ssl/site.pem: expires in 60d 3h (www.example.com, example.com)`: a line for each. The end of a line may be
    /// cut off.
    static func lines(of tls: JSONValue) -> [String] {
        (tls["certificates"]?.elements ?? []).map { certificate in
            let names = (certificate["names"]?.elements ?? []).compactMap(\.string).joined(separator: ", ")
            return
                "\(certificate["certificate"]?.string ?? "-"): \(expiry(certificate))\(names.isEmpty ? "" : " (\(names))")"
        }
    }

    /// How soon the first of them expires; `nil` if all have time.
    static func warning(of tls: JSONValue) -> String? {
        let first = (tls["certificates"]?.elements ?? []).min { left($0) < left($1) }
        guard let first, left(first) < soon else { return nil }
        return "\(first["certificate"]?.string ?? "-") \(expiry(first))"
    }

    private static func left(_ certificate: JSONValue) -> Double { certificate["expires_seconds"]?.number ?? .infinity }

    private static func expiry(_ certificate: JSONValue) -> String {
        let left = left(certificate)
        if left <= 0 { return "EXPIRED" }
        return left.isFinite ? "\(left < soon ? "EXPIRES" : "expires") in \(Wording.duration(left))" : "-"
    }
}

/// The tier shared with other machines, as `/status` describes it.
enum SharedTier {
    /// `redis://10.0.0.9:6379: ready, 3 of 3 connections`, or `… BREAKER-OPEN …`: a line for each server.
    static func nodes(of tier: JSONValue) -> [String] {
        (tier["nodes"]?.elements ?? []).map { node in
            let state = node["state"]?.string ?? "-"
            let reason = node["reason"]?.string.map { " (\($0))" } ?? ""
            let (open, there, wanted) = (node["breakers_open"], node["connections"], node["wanted"])
            let breakers = (open?.number ?? 0) > 0 ? ", \(StatusText.figure(open)) breakers open" : ""
            return "\(node["node"]?.string ?? "-"): \(state == "ready" ? state : state.uppercased())\(reason), "
                + "\(StatusText.figure(there)) of \(StatusText.figure(wanted)) connections\(breakers)"
        }
    }

    static func purges(of tier: JSONValue) -> String {
        let lag = tier["purge_lag_seconds"]?.number.map { ", log read \(Wording.duration($0)) ago" } ?? ""
        let known = tier["known_purges"].map { "\(StatusText.figure($0)) known, " } ?? ""
        return (tier["knows_purges"]?.isTrue == true ? "purges" : "PURGES UNKNOWN")
            + ": \(known)\(StatusText.figure(tier["pending_purges"])) to be written\(lag)"
    }

    /// The events that have happened since the start.
    static func events(of tier: JSONValue) -> String {
        let events = (tier["events"]?.elements ?? []).filter { ($0["count"]?.number ?? 0) > 0 }
            .map { "\($0["event"]?.string ?? "-") \(StatusText.figure($0["count"]))" }
        func size(_ name: String) -> String { Wording.bytes(tier[name]?.number ?? 0) }
        return "fetches: \(events.isEmpty ? "none" : events.joined(separator: ", ")); "
            + "\(size("bytes_read")) read, \(size("bytes_written")) written"
    }
}

/// The servers of an upstream, as `/status` lists them.
enum Servers {
    /// The states of a server that gets requests, or none by the will of its operator. In any other it fails.
    private static let sound: Set<String> = ["up", "slow-start", "drained"]

    /// What a request can be sent to: each server, or in its place the addresses of its name if there are several.
    static func places(of upstream: JSONValue) -> [JSONValue] {
        (upstream["servers"]?.elements ?? []).flatMap { server in
            let addresses = server["addresses"]?.elements ?? []
            return addresses.count > 1 ? addresses : [server]
        }
    }

    static func isFailing(_ place: JSONValue) -> Bool { place["state"]?.string.map { !sound.contains($0) } ?? true }
    static func isDrained(_ place: JSONValue) -> Bool { place["state"]?.string == "drained" }

    /// `up for 2h 1m`, or `EJECTED for 31s (503), next try in 9s`.
    static func condition(_ place: JSONValue) -> String {
        let state = place["state"]?.string ?? "-"
        let since = place["state_seconds"]?.number.map { " for \(Wording.duration($0))" } ?? ""
        guard isFailing(place) else { return state + since }
        let reason = place["reason"]?.string.map { " (\($0))" } ?? ""
        let next = place["next_try_seconds"]?.number.map { ", next try in \(Wording.duration($0))" } ?? ""
        return state.uppercased() + since + reason + next
    }

    /// `check ok 3s ago`; `nil` if there was none.
    static func lastCheck(_ place: JSONValue) -> String? {
        guard let check = place["last_check"], let ago = check["seconds"]?.number else { return nil }
        let outcome = check["succeeded"]?.isTrue == true ? "ok" : check["reason"]?.string ?? "failed"
        return "check \(outcome) \(Wording.duration(ago)) ago"
    }
}

/// The fetches in flight that `/status` lists.
enum Fetches {
    static func oldestFirst(_ status: JSONValue) -> [JSONValue] {
        (status["fetches"]?.elements ?? []).sorted {
            // Later fetches have higher numbers.
            ($1["seconds"]?.number ?? 0, $0["number"]?.number ?? 0) < (
                $0["seconds"]?.number ?? 0, $1["number"]?.number ?? 0
            )
        }
    }

    /// The table of `fetches` with a heading; empty if there are none.
    static func table(_ fetches: [JSONValue]) -> TextTable {
        guard !fetches.isEmpty else { return TextTable(rows: [], figures: 0..<0) }
        let hasAge = fetches.contains { $0["seconds"] != nil }
        let hasBytes = fetches.contains { $0["bytes"] != nil }
        let heading =
            ["FETCH OF"] + (hasAge ? ["AGE"] : []) + (hasBytes ? ["BYTES"] : []) + ["WAITING", "PHASE", "KEY"]
        return TextTable(
            rows: [heading]
                + fetches.map { fetch in
                    [fetch["upstream"]?.string ?? "-"]
                        + (hasAge ? [Wording.duration(fetch["seconds"]?.number ?? 0)] : [])
                        + (hasBytes ? [fetch["bytes"]?.number.map(Wording.bytes) ?? "-"] : [])
                        + [
                            Wording.whole(fetch["waiters"]?.number ?? 0), fetch["phase"]?.string ?? "-",
                            fetch["key"]?.string ?? "-",
                        ]
                },
            figures: 1..<(heading.count - 1))
    }
}
