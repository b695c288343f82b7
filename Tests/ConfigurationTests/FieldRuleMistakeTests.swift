import Configuration
import Routing
import Testing

/// Each name and value of `request-headers` and `response-headers` that is refused: one line with its place, the reason
/// and what to do.
@Suite struct `A mistake in a field rule` {
    private static let written = "the proxy writes how long each message is; remove this"
    private static let ofConnection = "it is for one connection only, and the proxy writes its own; remove this"
    private static let ownQuestion =
        "the proxy asks for what it has not stored, and the answer must be to its own question; remove this"
    private static let age = "every cache computes from it how old the response is; remove this"
    private static let validator =
        "every cache compares it to know whether it has the same bytes; have the upstream send it"
    private static let content = "it describes the bytes of the body, which no rule changes; have the upstream send it"

    static let ofBoth = [
        ("Content-Length", written), ("transfer-encoding", written), ("connection", ofConnection),
        ("Keep-Alive", ofConnection), ("proxy-connection", ofConnection), ("Proxy-Authorization", ofConnection),
        ("proxy-authenticate", ofConnection), ("proxy-x", ofConnection), ("TE", ofConnection),
        ("trailer", ofConnection), ("upgrade", ofConnection), ("http2-settings", ofConnection),
        ("via", "set `forwarding.via` instead"),
    ]
    static let ofRequests = [
        ("Host", "set `host` of the upstream instead"),
        ("expect", "the proxy itself waits for the upstream's 100; remove this"), ("range", ownQuestion),
        ("If-Match", ownQuestion), ("if-none-match", ownQuestion), ("if-modified-since", ownQuestion),
        ("if-unmodified-since", ownQuestion), ("if-range", ownQuestion),
        ("max-forwards", "the proxy counts it down; remove this"),
        ("cdn-loop", "the proxy sees in it whether an upstream leads back here; remove this"),
        ("proxy-status", ofConnection),
    ]
    static let ofResponses = [
        ("Age", age), ("date", age), ("etag", validator), ("last-modified", validator), ("content-encoding", content),
        ("content-range", content), ("accept-ranges", content), ("content-digest", content), ("content-md5", content),
        (
            "vary",
            "it says which requests the stored response answers; have the upstream send it, or name the field in `key.headers` of the route"
        ), ("cache-status", "turn `forwarding.cache-status` on or off instead"),
        ("proxy-status", "turn `forwarding.proxy-status` on or off instead"),
    ]

    @Test(
        arguments: ofBoth.map { ("request", $0) } + ofBoth.map { ("response", $0) }
            + ofRequests.map { ("request", $0) } + ofResponses.map { ("response", $0) })
    func `a name that no rule may have is refused with the reason`(message: String, _ name: (String, String)) {
        let (name, reason) = name
        for verb in ["set", "add"] {
            let text = "\(message)-headers:\n  \(verb): {x-a: 1, \(name): 1}\n"
            #expect(Faulty(text).found == ["f:2:17: `\(verb): \(name)`: \(reason)"])
        }
        let text = "\(message)-headers:\n  remove:\n    - x-a\n    - \(name)\n"
        #expect(Faulty(text).found == ["f:4:7: `remove: \(name)`: \(reason)"])
        let route = "routes:\n  - upstream: origin\n    \(message)-headers: {set: {\(name): 1}}\n"
        #expect(Faulty(route).found == ["f:3:\(22 + message.utf8.count): `set: \(name)`: \(reason)"])
    }

    @Test(arguments: [
        Faulty(
            "request-headers: {set: {Accept-Encoding: gzip}}\n",
            "f:1:25: `set: Accept-Encoding`: clients that do not accept these codings would get them too; only `remove` is possible"
        ),
        Faulty(
            "request-headers: 5\n",
            "f:1:18: `request-headers` is not a single value; give `{set: {a: b}, add: {c: d}, remove: [e]}`"),
        Faulty("request-headers: {sett: {a: b}}\n", "f:1:19: `sett` is not known; did you mean `set`?"),
        Faulty(
            "response-headers: {x-frame-options: DENY}\n",
            "f:1:20: `x-frame-options` is none of `set`, `add` and `remove`; for a field of this name write `response-headers: {set: {x-frame-options: …}}`"
        ),
        Faulty(
            "response-headers: {set: [a]}\n",
            "f:1:25: `set` must be names and values (`{x-from: proxy}`), not a list"),
        Faulty(
            "response-headers: {set: {a b: c}}\n",
            "f:1:26: `set` has `a b`, which is not the name of a field; give one such as `x-from`"),
        Faulty(
            "response-headers: {set: {x-a: 1, X-A: 2}}\n",
            "f:1:34: `set` has `X-A` twice, in other letters; remove one of them"),
        Faulty("response-headers: {remove: [X-A, x-a]}\n", "f:1:34: `remove` has `x-a` twice; remove one of them"),
        Faulty(
            "response-headers: {remove: [x-*]}\n", "f:1:29: `remove: x-*`: `*` is not a wildcard here; list each name"),
        Faulty(
            "response-headers: {set: {x-a: }}\n",
            "f:1:31: `x-a` is the value of a field, such as `max-age=31536000` or `\"${client}\"`, not nothing"),
        Faulty(
            "response-headers: {set: {x-a: ''}}\n",
            "f:1:31: `x-a: `: a field's value is not empty here; give one, or leave the line out"),
        Faulty(
            "response-headers: {set: {x-a: \"a\\nb\"}}\n",
            "f:1:31: `x-a: a\\nb`: a field's value is one line without control characters; remove them"),
        Faulty(
            "response-headers: {set: {x-a: é}}\n",
            "f:1:31: `x-a: é`: a field's value has only ASCII characters; percent-encode the others"),
        Faulty(
            "response-headers: {set: {x-a: ' b'}}\n",
            "f:1:31: `x-a:  b`: a field's value has no space around it; remove it"),
        Faulty(
            "response-headers: {set: {x-a: '${hots}'}}\n",
            "f:1:31: `x-a: ${hots}`: `${hots}` is no variable; did you mean `${host}`?"),
        Faulty(
            "response-headers: {set: {x-a: '${whatever}'}}\n",
            "f:1:31: `x-a: ${whatever}`: `${whatever}` is no variable; use one of `${host}`, `${target}`, `${path}`, `${query}`, `${scheme}`, `${client}`, `${request-id}`, `${status}`, `${cache}`"
        ),
        Faulty(
            "response-headers: {set: {x-a: 'a${host'}}\n",
            "f:1:31: `x-a: a${host`: `${` begins a variable, whose name ends with `}`; add it"),
        Faulty(
            "request-headers: {set: {x-a: '${status}'}}\n",
            "f:1:30: `x-a: ${status}`: `${status}` is known only once there is a response; use it in `response-headers`"
        ),
        Faulty(
            "response-headers: {set: {x-a: https://${host}}}\n",
            "f:1:40: not YAML: `{` within braces begins a map; put the value with `${` in quotes: `\"https://${host}\"`"
        ),
        Faulty(
            "request-headers: {remove: [accept]}\nroutes:\n  - upstream: origin\n    key: {headers: [Accept]}\n",
            "f:4:21: `headers: Accept`: a rule of `request-headers` sets or removes it, so the upstream does not get the client's; remove it here or there"
        ),
        Faulty(
            "forwarding: {request-id: yes}\n",
            "f:1:26: `request-id: yes`: not understood; give one of these words (pass, make)"),
    ])
    func `another mistake is reported with its place and what to do`(faulty: Faulty) {
        #expect(faulty.found == faulty.mistakes)
    }

    @Test func `too many lines, and a value too long, are refused`() {
        let many = (0..<65).map { "x-\($0): 1" }.joined(separator: ", ")
        #expect(
            Faulty("request-headers: {add: {\(many)}}\n").found == ["f:1:24: `add` has 65 entries; give at most 64"])
        let names = (0..<65).map { "x-\($0)" }.joined(separator: ", ")
        #expect(
            Faulty("request-headers: {remove: [\(names)]}\n").found
                == ["f:1:27: `remove` has 65 entries; give at most 64"])
        let long = String(repeating: "x", count: 4097)
        let found = Faulty("request-headers: {set: {x-a: \(long)}}\n").found
        #expect(found.count == 1 && found[0].hasSuffix("…`: too long; give at most 4096 bytes"))
    }

    @Test func `a variable of the environment has the same form`() throws {
        func load(_ text: String) -> Result<Settings, Mistakes> {
            Configuration.load(
                text: "workers: 1", path: "f", variables: Variables(["COALESCED_RESPONSE_HEADERS": text]))
        }
        let changes = try load("{set: {x-a: \"${host}\"}, remove: [Server]}").get().proxy.responseFields
        #expect(changes.set == [FieldChanges.Line("x-a", try Template("${host}"))] && changes.remove == ["server"])
        guard case .failure(let mistakes) = load("{set: {age: 1}}") else {
            Issue.record("taken")
            return
        }
        #expect(
            mistakes.all.map(\.description) == [
                "COALESCED_RESPONSE_HEADERS: `{set: {age: 1}}`: `set: age`: \(Self.age)"
            ])
    }

    @Test func `what is allowed although it is known is read`() throws {
        let names = ["cache-control", "set-cookie", "content-type", "location", "server", "x-forwarded-for", "cookie"]
        for message in ["request", "response"] {
            for name in names {
                let text = "\(message)-headers: {set: {\(name): a}, remove: [x-b]}"
                #expect(Faulty(text).found == [], "\(text)")
            }
        }
        #expect(Faulty("request-headers: {remove: [accept-encoding]}\n").found == [])
        #expect(Faulty("request-headers:\n  set:\n  add:\n  remove:\n").found == [])
    }
}
