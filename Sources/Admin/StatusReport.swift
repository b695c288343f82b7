import Bytes
import Coalescing
import Libevent
import Proxy
import Storage
import Telemetry

/// How the proxy is, as JSON for people and scripts.
struct StatusReport {
    let text: String

    init(_ server: ProxyServer) {
        let numbers = server.shared.store.numbers
        let counters = server.counters
        var json = JSONText()
        json.object { json in
            json.member("state", server.isDraining ? "draining" : "running")
            json.array("listeners", server.listenAddresses) { json, address in json.value("\(address)") }
            json.member("workers", server.workerCount)
            json.object("clients") { json in
                json.member("connections", Int(clamping: counters.clientConnectionsOpen))
            }
            json.object("memory") { json in
                json.member("limit", server.shared.budget.limit)
                json.member("stored", numbers.bytes)
                json.member("in_flight", server.shared.inFlightBytes)
            }
            json.object("store") { json in
                json.member("responses", numbers.responses)
                json.member("resources", numbers.resources)
                json.member("unshareable", numbers.markers)
                json.member("evicted", numbers.evictedFromSmall + numbers.evictedFromMain)
            }
            json.array("upstreams", server.upstreamSnapshots) { json, upstream in
                json.object { json in
                    json.member("name", upstream.name)
                    json.member("in_flight", upstream.operations.inFlight)
                    json.member("queued", upstream.operations.queued)
                    json.member("led", upstream.operations.led)
                    json.member("joined", upstream.operations.joined)
                    json.member("joined_late", upstream.operations.joinedLate)
                    json.member("released", upstream.operations.released)
                    json.member("overtaken", upstream.operations.overtaken)
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
        text = json.text + "\n"
    }
}

/// Writes JSON (RFC 8259), member by member.
struct JSONText {
    private(set) var text = ""
    private var needsComma = false

    mutating func object(_ name: String? = nil, _ members: (inout JSONText) -> Void) { nest(name, "{", "}", members) }

    mutating func array<Element>(_ name: String, _ elements: [Element], _ each: (inout JSONText, Element) -> Void) {
        nest(name, "[", "]") { json in for element in elements { each(&json, element) } }
    }

    mutating func member(_ name: String, _ number: Int) {
        begin(name)
        text += "\(number)"
    }

    mutating func member(_ name: String, _ string: String) {
        begin(name)
        append(string)
    }

    mutating func value(_ string: String) {
        begin(nil)
        append(string)
    }

    private mutating func nest(_ name: String?, _ open: String, _ close: String, _ body: (inout JSONText) -> Void) {
        begin(name)
        text += open
        needsComma = false
        body(&self)
        text += close
        needsComma = true
    }

    private mutating func begin(_ name: String?) {
        if needsComma { text += "," }
        needsComma = true
        guard let name else { return }
        append(name)
        text += ":"
    }

    private mutating func append(_ string: String) {
        text += "\""
        for scalar in string.unicodeScalars {
            switch scalar {
            case "\"", "\\": text += "\\\(scalar)"
            case _ where scalar.value < 0x20 || scalar.value == 0x7f:
                let digits = String(scalar.value, radix: 16)
                text += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: text.unicodeScalars.append(scalar)
            }
        }
        text += "\""
    }
}
