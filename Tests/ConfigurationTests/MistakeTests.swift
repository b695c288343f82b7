import Bytes
import Configuration
import Testing

@testable import HTTPSemantics

/// A file and what is wrong with it, as `coalesced check` prints it.
struct Faulty: CustomTestStringConvertible, Sendable {
    let text: String
    let mistakes: [String]

    init(_ text: String, _ mistakes: String...) {
        self.text = text
        self.mistakes = mistakes
    }

    var testDescription: String { text.split(separator: "\n").first.map(String.init) ?? "" }

    var found: [String] {
        switch Configuration.load(text: text, path: "f") {
        case .success: []
        case .failure(let mistakes): mistakes.all.map(\.description)
        }
    }
}

@Suite struct `A mistake` {
    // Told one by one, five thousand would take minutes.
    @Test(.timeLimit(.minutes(10))) func `a key repeated thousands of times is reported quickly and briefly`() {
        let found = Faulty(String(repeating: "a: 1\n", count: 5_000)).found
        #expect(found.count < 50 && found.contains { $0.hasPrefix("f:22:1: more than 20 keys are given twice") })
        let few = Faulty(String(repeating: "workers: 1\n", count: 20)).found
        #expect(few.count == 19)
    }

    @Test(arguments: [
        Faulty("wrkers: 2\n", "f:1:1: `wrkers` is not known; did you mean `workers`?"),
        Faulty(
            "coalescing:\n  max-waitres: 5\n",
            "f:2:3: `max-waitres` is not known; did you mean `max-waiters`?"),
        Faulty("log: info\n", "f:1:1: `log` is not known; did you mean `log-level`?"),
        Faulty("log-level: crit\n", "f:1:12: `log-level: crit`: not understood; did you mean `critical`?"),
        Faulty(
            "log-level: trace\n",
            "f:1:12: `log-level: trace`: not understood; give one of these words (debug, info, notice, warning, error, critical)"
        ),
        Faulty("max-waiters: 5\n", "f:1:1: `max-waiters` does not belong here; put it under `coalescing`"),
        Faulty(
            "caching:\n  key: {query: none}\n",
            "f:2:3: `key` does not belong here; put it in an element of `routes`"),
        Faulty("servers: http://a\n", "f:1:1: `servers` does not belong here; put it in an element of `upstreams`"),
        Faulty(
            "admin:\n  frobnicate: 1\n",
            "f:2:3: `frobnicate` is unknown; remove it. Keys allowed here: `address`, `socket-mode`, `hosts`, `token-file`, `purge`"
        ),
        Faulty("[a]: 1\n", "f:1:1: a key must be a word, not a list"),
    ])
    func `a mistake in a key is reported with the intended key or its place`(faulty: Faulty) {
        #expect(faulty.found == faulty.mistakes)
    }

    @Test(arguments: [
        Faulty("workers: many\n", "f:1:10: `workers: many`: not understood; give a whole number (0 to 1024)"),
        Faulty("workers: -1\n", "f:1:10: `workers: -1`: not understood; give a whole number (0 to 1024)"),
        Faulty("workers: 1025\n", "f:1:10: `workers: 1025`: out of range; give a whole number (0 to 1024)"),
        Faulty(
            "workers: 99999999999999999999999\n",
            "f:1:10: `workers: 99999999999999999999999`: out of range; give a whole number (0 to 1024)"),
        Faulty("workers:\n", "f:1:9: `workers` is a whole number, not nothing"),
        Faulty("workers: [1]\n", "f:1:10: `workers` is a whole number, not a list"),
        Faulty("clients: 5\n", "f:1:10: `clients` must be keys and values (`key: value`), not a single value"),
        Faulty("- a\n", "f:1:1: the file must be keys and values (`key: value`), not a list"),
        Faulty(
            "drain-timeout: 10\n",
            "f:1:16: `drain-timeout: 10`: the unit is missing; give a duration such as `500ms`, `30s` or `5m` (0s to 1h)"
        ),
        Faulty(
            "drain-timeout: 2h\n",
            "f:1:16: `drain-timeout: 2h`: out of range; give a duration such as `500ms`, `30s` or `5m` (0s to 1h)"),
        Faulty(
            "drain-timeout: 99999999999999999999h\n",
            "f:1:16: `drain-timeout: 99999999999999999999h`: out of range; "
                + "give a duration such as `500ms`, `30s` or `5m` (0s to 1h)"),
        Faulty(
            "storage:\n  memory: 10M\n",
            "f:2:11: `memory: 10M`: `M` is not a unit, `MiB` is; give a size such as `256MiB` (1MiB to 1024TiB)"),
        Faulty(
            "storage:\n  memory: 10KiB\n",
            "f:2:11: `memory: 10KiB`: out of range; give a size such as `256MiB` (1MiB to 1024TiB)"),
        Faulty(
            "storage:\n  memory: 256\n",
            "f:2:11: `memory: 256`: 256 bytes are out of range, and the unit may be missing; "
                + "give a size such as `256MiB` (1MiB to 1024TiB)"),
        Faulty(
            "drain-timeout: 10sec\n",
            "f:1:16: `drain-timeout: 10sec`: `sec` is not a unit, `s` is; "
                + "give a duration such as `500ms`, `30s` or `5m` (0s to 1h)"),
        Faulty(
            "drain-timeout: 1y\n",
            "f:1:16: `drain-timeout: 1y`: `y` is not a unit; "
                + "give a duration such as `500ms`, `30s` or `5m` (0s to 1h)"),
        Faulty(
            "drain-timeout: 1.5s\n",
            "f:1:16: `drain-timeout: 1.5s`: not understood; give a duration such as `500ms`, `30s` or `5m` (0s to 1h)"),
        Faulty(
            "clients: {max-body-size: 1G}\n",
            "f:1:26: `max-body-size: 1G`: `G` is not a unit, `GiB` is; "
                + "give a size such as `64KiB` or `256MiB` (0B to 1024TiB)"),
        Faulty(
            "routes: [{upstream: origin, coalesce: maybe}]\n",
            "f:1:39: `coalesce: maybe`: not understood; give `true` or `false`, or `default`"),
        Faulty("storage:\n  shards: 48\n", "f:2:11: `shards: 48`: out of range; give a power of two (1 to 4096)"),
        Faulty("storage: {shards: +16}\n", "f:1:19: `shards: +16`: not understood; give a power of two (1 to 4096)"),
        Faulty(
            "caching: {stale-if-error: 1500ms}\n",
            "f:1:27: `stale-if-error: 1500ms`: not understood; give a duration in whole seconds such as `30s` or `5m` (0s to 365d)"
        ),
        Faulty(
            "storage:\n  in-flight-share: 0.5\n",
            "f:2:20: `in-flight-share: 0.5`: not understood; give a share such as `10%` (1% to 100%)"),
        Faulty(
            "coalescing:\n  enabled: maybe\n", "f:2:12: `enabled: maybe`: not understood; give `true` or `false`"),
        Faulty(
            "coalescing:\n  when-last-leaves: finnish\n",
            "f:2:21: `when-last-leaves: finnish`: not understood; did you mean `finish`?"),
        Faulty(
            "coalescing:\n  when-exceeded: 502\n",
            "f:2:18: `when-exceeded: 502`: not understood; did you mean `503`?"),
        Faulty(
            "coalescing:\n  when-exceeded: queue\n",
            "f:2:18: `when-exceeded: queue`: not understood; give one of these words (stale, pass, 503)"),
        Faulty(
            "admin:\n  socket-mode: 0999\n",
            "f:2:16: `socket-mode: 0999`: not understood; give permissions in octal such as `0660` (0000 to 0777)"),
        Faulty(
            "access-log:\n  target: stdot\n", "f:2:11: `target: stdot`: not understood; did you mean `stdout`?"),
        Faulty("forwarding: {via: false}\n", "f:1:19: `via: false`: give a name such as `coalesced`, or `off`"),
        Faulty(
            "access-log: {target: \"/a\\0b\"}\n",
            "f:1:22: `target: /a\\0b`: a path must be valid UTF-8 without control characters"),
        Faulty(
            "access-log: {target: /\u{FFFD}}\n",
            "f:1:22: `target: /\u{FFFD}`: not valid UTF-8; save the file as UTF-8"),
        Faulty(
            "workers: \"\\e[31m\\n\"\n",
            "f:1:10: `workers: \\u{1B}[31m\\n`: not understood; give a whole number (0 to 1024)"),
        Faulty(
            "workers: \(String(repeating: "a", count: 5_000))\n",
            "f:1:10: `workers: \(String(repeating: "a", count: 100))…`: not understood; give a whole number (0 to 1024)"
        ),
        Faulty(
            "hosts: [a.example, \"b c\"]\n",
            "f:1:20: `hosts: b c`: not understood; give a host such as `www.example.com`, or `*.example.com`, without a port"
        ),
    ])
    func `a mistake in a value is reported with the permitted values`(faulty: Faulty) {
        #expect(faulty.found == faulty.mistakes)
    }

    @Test(arguments: [
        Faulty(
            "listen: 8080\n",
            "f:1:9: `listen: 8080`: not an address to listen on: the address before the port is missing; "
                + "use 0.0.0.0 or [::] for all addresses; give one such as `127.0.0.1:8080`, `[::1]:8080` or `unix:/path`"
        ),
        Faulty(
            "listen: 127.0.0.1\n",
            "f:1:9: `listen: 127.0.0.1`: not an address to listen on: the port is missing; "
                + "give one such as `127.0.0.1:8080`, `[::1]:8080` or `unix:/path`"),
        Faulty(
            "listen:\n  - 127.0.0.1:8080\n  - 127.0.0.1:99999\n",
            "f:3:5: `listen: 127.0.0.1:99999`: not an address to listen on: the port is not a number from 0 to 65535; "
                + "give one such as `127.0.0.1:8080`, `[::1]:8080` or `unix:/path`"),
        Faulty(
            "listen: [127.0.0.1:8080, 127.0.0.1:8080]\n",
            "f:1:26: `listen` has `127.0.0.1:8080` twice; remove one of them"),
        Faulty("listen: []\n", "f:1:9: `listen` is empty; give at least 1"),
        Faulty(
            "listen: ftp://127.0.0.1:80\n",
            "f:1:9: `listen: ftp://127.0.0.1:80`: not an address to listen on: it is a URL; "
                + "give one such as `127.0.0.1:8080`, `[::1]:8080` or `unix:/path`"),
        Faulty(
            "listen: ''\n",
            "f:1:9: `listen: `: not an address to listen on: it is empty; give one such as `127.0.0.1:8080`, `[::1]:8080` or `unix:/path`"
        ),
    ])
    func `a mistake in an address to listen at is reported`(faulty: Faulty) {
        #expect(faulty.found == faulty.mistakes)
    }

    @Test(arguments: [
        "headers: ['x-app-*']", "cookies: ['wordpress_*']",
    ])
    func `a wildcard in a list of names is refused where wildcards have no meaning`(_ names: String) {
        let faulty = Faulty("routes: [{upstream: origin, key: {\(names)}}]\n")
        #expect(
            faulty.found.count == 1
                && faulty.found[0].contains("`*` is not a wildcard here; list each name"),
            "\(faulty.found)")
    }

    @Test(arguments: [
        Faulty(
            "routes: [{upstream: origin, key: {query: {drop: [u*m, utm_*, a b]}}}]\n",
            "f:1:50: `drop: u*m`: `*` is only allowed at the end of a name",
            "f:1:62: `drop: a b`: not understood; give the name of a query parameter such as `page`, "
                + "or the beginning of names such as `utm_*`"),
        Faulty(
            "routes: [{upstream: origin, key: {query: {keep: ['*']}}}]\n",
            "f:1:50: `keep: *`: `*` alone is every parameter; write `query: none` to drop all, `query: all` to keep them"
        ),
        Faulty(
            "routes: [{upstream: origin, key: {query: {drop: [utm_*, utm_, utm_*]}}}]\n",
            "f:1:63: `drop` has `utm_*` twice; remove one of them"),
    ])
    func `a mistake in a pattern of query parameters is reported`(faulty: Faulty) {
        #expect(faulty.found == faulty.mistakes)
    }

    @Test(arguments: [
        ("10.0.0.0/33", "the prefix length after the slash is invalid"),
        ("10.0.0.1/8", "the address has bits set beyond the prefix length"),
        ("localhost", "it is not an IP address"),
        ("127.0.0.1:80", "it is not an IP address"),
    ])
    func `a mistake in a trusted proxy is reported`(_ value: String, _ mistake: String) {
        let faulty = Faulty(
            "clients: {trusted-proxies: [127.0.0.1, '\(value)']}\n",
            "f:1:40: `trusted-proxies: \(value)`: not an address or a block of addresses: \(mistake); "
                + "give one such as `127.0.0.1`, `10.0.0.0/8` or `fd00::/8`, or `unix`")
        #expect(faulty.found == faulty.mistakes)
    }

    @Test(arguments: [
        ("https://a.example:0", "not understood; give \(server)"),
        ("https://unix:/run/a.sock", "write a Unix socket without `https://`: `unix:/path`"),
        ("a.example:80", "not understood; give \(server)"),
        ("http://", "not understood; give \(server)"),
        ("http://256.1.1.1", "not understood; give \(server)"),
        ("http://1.2.3", "not understood; give \(server)"),
        ("http://999", "not understood; give \(server)"),
        ("http://a..b", "not understood; give \(server)"),
        ("http://-a", "not understood; give \(server)"),
        ("http://\(String(repeating: "a", count: 64)).b", "not understood; give \(server)"),
        ("http://a.example:0", "not understood; give \(server)"),
        ("http://a.example:99999", "not understood; give \(server)"),
        ("http://[::1", "not understood; give \(server)"),
        (
            "http://a.example/base",
            "a server takes no path, since requests keep theirs; remove everything after the port"
        ),
        ("http://me:secret@a.example", "a server takes no user name or password; remove them"),
        ("http://unix:/run/a.sock", "write a Unix socket without `http://`: `unix:/path`"),
        ("http://unix:/run/a.sock:/", "write a Unix socket without `http://`: `unix:/path`"),
        ("unix:a.sock", noPath), ("unix:@a", noPath), ("unix:./a", noPath), ("unix:/", noPath),
    ])
    func `a mistake in the address of a server is reported`(url: String, reason: String) {
        let faulty = Faulty(
            "upstreams:\n  - name: a\n    servers:\n      - \(url)\n",
            "f:4:9: `servers: \(Spelling.masked(url))`: \(reason)")
        #expect(faulty.found == faulty.mistakes)
    }

    @Test(arguments: [
        Faulty(
            "upstreams:\n  - servers: [http://a.example]\n",
            "f:2:5: an upstream needs `name`; add it"),
        Faulty(
            "upstreams:\n  - name: a\n",
            "f:2:5: an upstream needs `servers`; add it"),
        Faulty(
            "upstreams:\n  - name: a\n    servers: [http://a.example]\n  - name: a\n    servers: [http://b.example]\n",
            "f:4:5: an upstream named `a` already exists above; use another name"),
        Faulty(
            "upstreams: []\n",
            "f:1:12: `upstreams` is empty; name the servers to forward to, such as `[{name: app, servers: [http://127.0.0.1:9000]}]`"
        ),
        // A route cannot name one either; that is not told as well.
        Faulty(
            "upstreams: []\nroutes:\n  - upstream: app\n",
            "f:1:12: `upstreams` is empty; name the servers to forward to, such as `[{name: app, servers: [http://127.0.0.1:9000]}]`"
        ),
        Faulty("upstreams:\n  name: a\n", "f:2:3: `upstreams` is a list (`- …`), not keys and values"),
        Faulty(
            "routes:\n  - upstream: orgin\n",
            "f:2:15: there is no upstream `orgin`; did you mean `origin`?"),
        Faulty(
            "routes:\n  - upstream: elsewhere\nupstreams:\n  - name: a\n    servers: http://a.example\n",
            "f:2:15: there is no upstream `elsewhere`; name one of: a"),
        Faulty(
            "routes:\n  - upstream: elsewhere\nupstreams:\n  - name: a\n    servers: http://a.example\n  - name: a\n    servers: http://b.example\n",
            "f:2:15: there is no upstream `elsewhere`; name one of: a",
            "f:6:5: an upstream named `a` already exists above; use another name"),
        Faulty(
            "routes:\n  - upstream: origin\n    path: static\n",
            "f:3:11: `path: static`: not understood; give the beginning of a path such as `/static/`"),
        Faulty(
            "routes:\n  - upstream: origin\n    key:\n      query: {only: [a]}\n",
            "f:4:14: `query` is `all`, `none`, `{keep: [a, b]}` or `{drop: [c]}`"),
        Faulty(
            "routes:\n  - upstream: origin\n    key:\n      headers: [X-Forwarded-For, via, accept, host, x-forwarded-proto, te]\n",
            "f:4:17: `headers: X-Forwarded-For`: the proxy adds the client's address to it, which is not part of the key; "
                + "remove it, or turn `forwarding.x-forwarded` off",
            "f:4:34: `headers: via`: the proxy adds its own name and the client's HTTP version to it; "
                + "remove it, or turn `forwarding.via` off",
            "f:4:47: `headers: host`: it is part of every key already; remove it",
            "f:4:72: `headers: te`: it is a connection field, which is never forwarded; remove it"),
        Faulty(
            "routes:\n  - upstream: origin\n    key: {headers: [x-forwarded-for, via]}\nforwarding:\n  x-forwarded: false\n  via: off\n"
        ),
        Faulty(
            "routes:\n  - upstream: origin\n    key: {headers: [x_tenant]}\n",
            "f:3:21: `headers: x_tenant`: fields with such names are not forwarded; remove it, or turn `forwarding.odd-field-names` on"
        ),
        Faulty("routes:\n  - upstream: origin\n    key: {headers: [x_tenant]}\nforwarding: {odd-field-names: true}\n"),
        Faulty(
            "routes:\n  - upstream: origin\n    path: /static/*\n",
            "f:3:11: `path: /static/*`: `*` is not a wildcard; remove it: a path matches everything below it"),
        Faulty("routes:\n  -\n", "f:2:4: a route is empty; fill it in or remove the dash"),
    ])
    func `a mistake in an upstream or a route is reported`(faulty: Faulty) {
        #expect(faulty.found == faulty.mistakes)
    }

    @Test(arguments: [
        "accept", "cookie", "x-tenant", "expect", "host", "connection", "keep-alive", "proxy-connection", "te",
        "trailer", "upgrade", "http2-settings", "transfer-encoding",
        "content-length", "via", "x-forwarded-for",
    ])
    func `a key field that upstreams do not get as sent is refused`(field: String) {
        let sight = CachingPolicy().sight(of: ByteSlice(field).span)
        let found = Faulty("routes:\n  - {upstream: origin, key: {headers: [\(field)]}}\n").found
        #expect(found.isEmpty == (sight == .asSent), "\(found)")
    }

    @Test(arguments: [
        Faulty(
            "routes:\n  - upstream: origin\n  - path: /private\n    upstream: origin\n    cache: false\n",
            "f:3:5: the route on line 2 already matches all requests of this one; move this one before it"),
        Faulty(
            "routes:\n  - {path: /a, upstream: origin}\n  - {path: /a/b, upstream: origin}\n  - {path: /ab, upstream: origin}\n",
            "f:3:5: the route on line 2 already matches all requests of this one; move this one before it"),
        Faulty(
            "routes:\n  - {host: A.b, upstream: origin}\n  - {host: a.B, upstream: origin}\n",
            "f:3:5: the route on line 2 already matches all requests of this one; remove one of them"),
        Faulty(
            "routes:\n  - {path: /a/, upstream: origin}\n  - {path: /a, upstream: origin}\n  - {host: a, path: /a, upstream: origin}\n",
            "f:4:5: the route on line 3 already matches all requests of this one; move this one before it"),
        Faulty(
            "routes:\n  - {host: a, path: /a, upstream: origin}\n  - {host: b, path: /a, upstream: origin}\n  - {path: /a/b, upstream: origin}\n"
        ),
        Faulty(
            "hosts: [b.a.example]\nroutes:\n  - {host: '*.a.example', upstream: origin}\n  - {host: b.a.example, upstream: origin}\n",
            "f:4:5: the route on line 3 already matches all requests of this one; move this one before it"
        ),
        Faulty(
            "upstreams:\n  - {name: a, servers: 'http://a'}\n  - {name: b, servers: 'http://b'}\nroutes:\n  - upstream: b\n"
        ),
    ])
    func `a route that can get no requests is reported`(faulty: Faulty) {
        #expect(faulty.found == faulty.mistakes)
    }

    @Test(arguments: [
        Faulty("caching: {default-ttl: {}}\n", "f:1:24: `default-ttl` is empty; give a duration, or one for a status"),
        Faulty(
            "caching:\n  default-ttl:\n    200: soon\n    404:\n",
            "f:3:10: `200: soon`: not understood; give a duration such as `500ms`, `30s` or `5m` (0s to 365d)",
            "f:4:9: `404` is a duration such as `500ms`, `30s` or `5m`, not nothing"),
        Faulty(
            "caching: {default-ttl: {4xx: 1m, any: 1m, 2000: 1m, 099: 1m}}\n",
            "f:1:25: `default-ttl` has `4xx`, which is not a status; use one such as `404`, or `other` for the rest",
            "f:1:34: `default-ttl` has `any`, which is not a status; use one such as `404`, or `other` for the rest",
            "f:1:43: `default-ttl` has `2000`, which is not a status; use one such as `404`, or `other` for the rest",
            "f:1:53: `default-ttl` has `099`, which is not a status; use one such as `404`, or `other` for the rest"),
        Faulty(
            "routes:\n  - upstream: origin\n    default-ttl:\n      200: 1m\n      303: 1m\n      206: 1m\n      414: 1m\n",
            "f:5:7: `default-ttl` has 303, which is stored only if the response itself states a lifetime (RFC 9111 section 3); "
                + "remove it, or have the upstream send Cache-Control",
            "f:6:7: `default-ttl` has 206, which is a part of a 200 response; use 200",
            "f:7:7: `default-ttl` has 414, which is about one request and answers no other one; remove it"),
        Faulty(
            "caching: {default-ttl: {200: 1m, 404: 1m, 200: 2m, '404': 1m}}\n",
            "f:1:43: `200` is already given on line 1; remove one of them",
            "f:1:52: `404` is already given on line 1; remove one of them"),
        Faulty(
            "caching: {default-ttl: [10m]}\n",
            "f:1:24: `default-ttl` is a duration such as `500ms`, `30s` or `5m`, not a list"),
        Faulty("caching: {default-ttl: {200: 1m, 203: 1m, 204: 1m, 300: 1m, 301: 1m, 308: 1m}}\n"),
        Faulty("caching: {default-ttl: {302: 1m, 307: 1m, 404: 1m, 405: 1m, 410: 1m, 501: 1m, other: 0s}}\n"),
    ])
    func `a mistake in lifetimes by status is reported`(faulty: Faulty) {
        #expect(faulty.found == faulty.mistakes)
    }

    @Test(arguments: [
        Faulty(
            "caching: {pass-cookies: [a*b, a b]}\n",
            "f:1:26: `pass-cookies: a*b`: `*` is only allowed at the end of a name",
            "f:1:31: `pass-cookies: a b`: not understood; give the name of a cookie such as `sessionid`, "
                + "or the beginning of names such as `wordpress_logged_in_*`"),
        Faulty(
            "caching: {pass-cookies: [a, a*, a]}\n", "f:1:33: `pass-cookies` has `a` twice; remove one of them"),
        Faulty(
            "caching: {pass-cookies: session*}\nroutes:\n  - {upstream: origin, key: {cookies: [theme, sessionid]}}\n",
            "f:3:47: `cookies: sessionid`: requests with this cookie bypass the cache, so it never matters here; remove it here or from `pass-cookies`"
        ),
        Faulty(
            "routes:\n  - {upstream: origin, pass-cookies: sid, key: {cookies: sid}}\n",
            "f:2:58: `cookies: sid`: requests with this cookie bypass the cache, so it never matters here; remove it here or from `pass-cookies`"
        ),
        Faulty(
            "caching: {pass-cookies: sid}\nroutes:\n  - {upstream: origin, pass-cookies: [], key: {cookies: sid}}\n"),
    ])
    func `a mistake in pass-cookies is reported`(faulty: Faulty) {
        #expect(faulty.found == faulty.mistakes)
    }

    @Test(arguments: [
        Faulty(
            "caching: {strip-cookies: [a*b, a, a]}\n",
            "f:1:27: `strip-cookies: a*b`: `*` is only allowed at the end of a name",
            "f:1:35: `strip-cookies` has `a` twice; remove one of them"),
        Faulty(
            "routes:\n  - upstream: origin\n    strip-cookies: [\((0...64).map { "c\($0)" }.joined(separator: ", "))]\n",
            "f:3:20: `strip-cookies` has 65 entries; give at most 64"),
        Faulty(
            "caching:\n  strip-cookies: [_ga, session*]\n  pass-cookies: [a, sessionid]\n",
            "f:2:24: `strip-cookies: session*` takes `sessionid` out of requests, so `pass-cookies` never finds it; "
                + "remove it from one of the two"),
        Faulty(
            "caching: {pass-cookies: [sid]}\nroutes:\n  - {upstream: origin, strip-cookies: '*'}\n",
            "f:3:39: `strip-cookies: *` takes `sid` out of requests, so `pass-cookies` never finds it; "
                + "remove it from one of the two, or give this route its own list, such as `pass-cookies: []`"),
        Faulty(
            "caching: {strip-cookies: [a, sid]}\nroutes:\n  - {upstream: origin, pass-cookies: [b, sid]}\n",
            "f:3:42: `strip-cookies: sid` takes `sid` out of requests, so `pass-cookies` never finds it; "
                + "remove it from one of the two, or give this route its own list, such as `pass-cookies: []`"),
        Faulty(
            "caching: {strip-cookies: th*}\nroutes:\n  - {upstream: origin, key: {cookies: [a, theme]}}\n",
            "f:3:43: `cookies: theme`: `strip-cookies: th*` takes this cookie out of requests before the key is made; "
                + "remove it from one of the two"),
        // What is left passes; the list of all routes does not count where a route has one; names are exact.
        Faulty("caching: {strip-cookies: [_ga, wp_lang], pass-cookies: ['*', wp_*]}\n"),
        Faulty(
            "caching: {pass-cookies: [sid]}\nroutes:\n  - {upstream: origin, strip-cookies: '*', pass-cookies: []}\n"),
        Faulty("caching: {strip-cookies: [SID, si], pass-cookies: [sid]}\n"),
        Faulty(
            "caching: {strip-cookies: theme}\nroutes:\n  - {upstream: origin, strip-cookies: [], key: {cookies: theme}}\n"
        ),
    ])
    func `a mistake in strip-cookies is reported`(faulty: Faulty) {
        #expect(faulty.found == faulty.mistakes)
    }

    @Test(arguments: [
        Faulty(
            "routes:\n  - {upstream: origin, key: {language: [en_US, '*', e, de-, x-de, de-a, deutschland-de-x1]}}\n",
            "f:2:41: `language: en_US`: not understood; give the tag of a language such as `en` or `pt-BR`",
            "f:2:48: `language: *`: `*` is no language; name each, or leave the key out",
            "f:2:53: `language: e`: not understood; give the tag of a language such as `en` or `pt-BR`",
            "f:2:56: `language: de-`: not understood; give the tag of a language such as `en` or `pt-BR`",
            "f:2:61: `language: x-de`: not understood; give the tag of a language such as `en` or `pt-BR`",
            "f:2:67: `language: de-a`: not understood; give the tag of a language such as `en` or `pt-BR`",
            "f:2:73: `language: deutschland-de-x1`: not understood; give the tag of a language such as `en` or `pt-BR`"),
        Faulty(
            "routes:\n  - {upstream: origin, key: {language: [de, en, de]}}\n",
            "f:2:49: `language` has `de` twice; remove one of them"),
        Faulty("routes:\n  - {upstream: origin, key: {language: [zh-Hant-TW, de-CH-1996, sl-rozaj-biske, es-419]}}\n"),
    ])
    func `a mistake in the languages of a site is reported`(faulty: Faulty) {
        #expect(faulty.found == faulty.mistakes)
    }

    @Test(arguments: [
        Faulty(
            "caching: {ttl: 10}\n",
            "f:1:16: `ttl: 10`: the unit is missing; give a duration such as `500ms`, `30s` or `5m` (0s to 365d)"),
        Faulty(
            "caching: {ttl: {200: 1m, any: 1m, 206: 1m, 304: 1m, 103: 1m, 401: 1m, 429: 1m}}\n",
            "f:1:26: `ttl` has `any`, which is not a status; use one such as `404`, or `other` for the rest",
            "f:1:35: `ttl` has 206, which is a part of a 200 response; use 200",
            "f:1:44: `ttl` has 304, which only confirms a stored response; use the status of that one, such as 200",
            "f:1:53: `ttl` has 103, which is no final response; remove it",
            "f:1:62: `ttl` has 401, which is about one request and answers no other one; remove it",
            "f:1:71: `ttl` has 429, which is about one request and answers no other one; remove it"),
        Faulty("routes:\n  - {upstream: origin, ttl: {302: 1m, 400: 1s, 403: 1m, 500: 1s, 503: 1s, other: 0s}}\n"),
        Faulty(
            "caching: {min-ttl: 500ms, max-ttl: none}\n",
            "f:1:20: `min-ttl: 500ms`: not understood; give a duration in whole seconds such as `30s` or `5m` (0s to 365d)",
            "f:1:36: `max-ttl: none`: not understood; give a duration in whole seconds such as `30s` or `5m` (0s to 365d)"
        ),
        Faulty(
            "caching: {max-ttl: 1m, min-ttl: 1h}\n",
            "f:1:33: `min-ttl` (1h) is longer than `max-ttl` (1m); lower the one, or raise the other"),
        Faulty(
            "caching: {min-ttl: 1h}\nroutes:\n  - {upstream: origin, max-ttl: 1m}\n",
            "f:3:33: `min-ttl` (1h) is longer than `max-ttl` (1m); lower the one, or raise the other"),
        Faulty("caching: {min-ttl: 1h}\nroutes:\n  - {upstream: origin, max-ttl: 1m, min-ttl: 0s}\n"),
    ])
    func `a mistake in ttl, min-ttl or max-ttl is reported`(faulty: Faulty) {
        #expect(faulty.found == faulty.mistakes)
    }

    @Test(arguments: [
        Faulty(
            "storage: {memory: 100MiB, max-object-size: 51MiB}\n",
            "f:1:44: no response larger than `in-flight-share` (50%) of `memory` (100MiB) is stored, that is 50MiB; "
                + "lower `max-object-size`, or raise `memory` or `in-flight-share`"),
        Faulty("storage: {memory: 100MiB, max-object-size: 51MiB, in-flight-share: 60%}\n"),
        Faulty("storage: {memory: 128MiB, max-object-size: 64MiB}\n"),
        Faulty("storage: {memory: 10MiB}\n"),
    ])
    func `an object size for which memory is too small is reported`(faulty: Faulty) {
        #expect(faulty.found == faulty.mistakes)
    }

    @Test(arguments: [
        Faulty(
            "workers: 1\nlog-level: info\nworkers: 2\n",
            "f:3:1: `workers` is already given on line 1; remove one of them"),
        Faulty(
            "clients:\n  \"idle-timeout\": 1s\n  idle-timeout: 2s\n  idle-timeout: 3s\nworkers: many\n",
            "f:3:3: `idle-timeout` is already given on line 2; remove one of them",
            "f:4:3: `idle-timeout` is already given on line 3; remove one of them",
            "f:5:10: `workers: many`: not understood; give a whole number (0 to 1024)"),
    ])
    func `a duplicate key does not hide other mistakes`(faulty: Faulty) {
        #expect(faulty.found == faulty.mistakes)
    }

    @Test(arguments: [
        Faulty(
            "workers: 1\n\tlisten: a\n",
            "f:2:1: not YAML: found a tab character that violates indentation, "
                + "while scanning a plain scalar that begins on line 1; this is a tab, use spaces"),
        Faulty(
            "clients: {head-timeout: 1s\nworkers: 2\n",
            "f:2:8: not YAML: did not find expected ',' or '}', while parsing a flow mapping that begins on line 1; "
                + "look at the colons, quotes and indentation here and just above"),
        Faulty(
            "workers: 1\n---\nworkers: 2\n",
            "f:2:1: not YAML: but found another document, expected a single document in the stream that begins on line 1; "
                + "look at the colons, quotes and indentation here and just above"),
        Faulty("a: b\nc: \u{7}\n", "f:2:4: not YAML: control characters are not allowed; remove this character"),
    ])
    func `a YAML syntax error has its line and column`(faulty: Faulty) {
        #expect(faulty.found == faulty.mistakes)
    }

    private static func indicator(_ character: String, _ meaning: String, _ value: String) -> String {
        "`\(character)` at the beginning of a value is \(meaning) in YAML; put the value in quotes: `\"\(value)\"`"
    }

    @Test(arguments: [
        Faulty(
            "hosts:\n  - a.example\n  - *.a.example # all\n",
            "f:3:5: not YAML: \(indicator("*", "an alias", "*.a.example"))"),
        Faulty("hosts: [*.a.example, b]\n", "f:1:9: not YAML: \(indicator("*", "an alias", "*.a.example"))"),
        Faulty(
            "routes:\n  - {host: *.a.example, upstream: origin}\n",
            "f:2:12: not YAML: \(indicator("*", "an alias", "*.a.example"))"),
        Faulty(
            "routes:\n  - host: *.a.example\n    upstream: origin\n",
            "f:2:11: not YAML: \(indicator("*", "an alias", "*.a.example"))"),
        Faulty("caching: {pass-cookies: [*]}\n", "f:1:26: not YAML: \(indicator("*", "an alias", "*"))"),
        Faulty("caching:\n  pass-cookies: *\n", "f:2:17: not YAML: \(indicator("*", "an alias", "*"))"),
        Faulty("workers: *other\n", "f:1:10: not YAML: \(indicator("*", "an alias", "*other"))"),
        Faulty("hosts: [a, &b]\n", "f:1:12: \(indicator("&", "an anchor", "&b"))"),
        Faulty("forwarding: {via: &.b}\n", "f:1:19: not YAML: \(indicator("&", "an anchor", "&.b"))"),
        Faulty("forwarding: {via: !a}\n", "f:1:19: not YAML: \(indicator("!", "a tag", "!a"))"),
        Faulty("forwarding:\n  via: !a b\n", "f:2:8: \(indicator("!", "a tag", "!a"))"),
        Faulty("hosts:\n  - !a\n", "f:2:5: \(indicator("!", "a tag", "!a"))"),
        Faulty("admin:\n  address: @a\n", "f:2:12: not YAML: \(indicator("@", "reserved", "@a"))"),
        Faulty("hosts: [`a`]\n", "f:1:9: not YAML: \(indicator("`", "reserved", "`a`"))"),
        Faulty("access-log: {target: %h/log}\n", "f:1:22: not YAML: \(indicator("%", "a directive", "%h/log"))"),
        // What these characters are for.
        Faulty("drain-delay: &time 1s\ndrain-timeout: *time\nhosts: [!!str 'a', \"*.b\"]\n"),
    ])
    func `a value that needs quotes is reported`(faulty: Faulty) {
        #expect(faulty.found == faulty.mistakes)
    }

    @Test(arguments: ["", "\n", " \n\n"])
    func `an empty file is reported`(text: String) {
        #expect(
            Faulty(text).found == ["f:1:1: the file is empty; if you want all defaults, put a comment in it"])
    }

    @Test func `a byte order mark is ignored and shifts no column`() {
        let text = "workers: 1\ndrain-timeout: 10s\n"
        #expect(Faulty("\u{FEFF}" + text).found.isEmpty)
        #expect(
            Faulty("\u{FEFF}wrkers: 2\n" + text).found == ["f:1:1: `wrkers` is not known; did you mean `workers`?"])
        #expect(Faulty("\u{FEFF}\n").found == Faulty("\n").found)
    }

    @Test(arguments: [
        [0xFF, 0xFE, 0x61, 0x00, 0x3A, 0x00], [0xFE, 0xFF, 0x00, 0x61, 0x00, 0x3A], [0x61, 0x00, 0x3A, 0x00],
        [0xFF, 0xFE, 0x00, 0x00, 0x61, 0x00, 0x00, 0x00],
    ])
    func `a file in UTF-16 or UTF-32 is reported once`(bytes: [UInt8]) {
        #expect(
            Faulty(String(decoding: bytes, as: UTF8.self)).found == [
                "f:1:1: this is UTF-16 or UTF-32, not text in UTF-8; save the file as UTF-8"
            ])
    }

    @Test(arguments: [
        Faulty(
            "listen: [127.0.0.1:80, 127.0.0.1:8081]\n",
            "f:1:9: `listen` and `admin.address` are both 127.0.0.1:8081; choose another for one of them"),
        Faulty(
            "admin:\n  address: '[::1]:80'\nlisten: '[::]:80'\n",
            "f:2:12: `listen` is [::]:80 and `admin.address` [::1]:80, of which one takes the other's connections; choose another for one of them"
        ),
        Faulty(
            "listen: unix:/run/a\nadmin: {address: unix:/run/a}\n",
            "f:2:18: `listen` and `admin.address` are both unix:/run/a; choose another for one of them"
        ),
        Faulty(
            "listen: 127.0.0.1:80\nadmin: {address: 0.0.0.0:80}\n",
            "f:2:18: `listen` is 127.0.0.1:80 and `admin.address` 0.0.0.0:80, of which one takes the other's connections; choose another for one of them"
        ),
        Faulty("listen: 127.0.0.1:0\nadmin: {address: 127.0.0.1:0}\n"),
        Faulty("listen: 127.0.0.1:80\nadmin: {address: '[::]:80'}\n"),
        Faulty("listen: 0.0.0.0:8081\nadmin: {address: off}\n"),
    ])
    func `a client address that overlaps the admin address is reported`(faulty: Faulty) {
        #expect(faulty.found == faulty.mistakes)
    }

    @Test func `a socket path that is too long, has a control character or is empty is reported`() {
        for path in ["/" + String(repeating: "x", count: 107), "/a\nb", "/a\0b", "/a\u{7F}", ""] {
            let mistake = #expect(throws: ValueMistake.self) { try ScalarSyntax.server.value(of: "unix:\(path)") }
            #expect(mistake?.description == noPath)
        }
    }

    @Test(arguments: [
        Faulty(
            "listen: unix:/run/a\nupstreams: [{name: a, servers: 'http://a'}, {name: b, servers: 'unix:/run/a'}]\n",
            "f:2:64: clients connect at unix:/run/a, which makes unix:/run/a this proxy itself; give the address of the origin"
        ),
        Faulty(
            "listen: 0.0.0.0:80\nupstreams:\n  - {name: a, servers: ['http://10.0.0.1', 'http://127.0.0.1']}\n",
            "f:3:24: clients connect at 0.0.0.0:80, which makes http://127.0.0.1:80 this proxy itself; give the address of the origin"
        ),
        Faulty(
            "listen: 127.0.0.1:9000\n",
            "f:1:9: clients connect at 127.0.0.1:9000, which makes http://127.0.0.1:9000 this proxy itself; give the address of the origin"
        ),
        Faulty("listen: unix:/run/a\nupstreams: [{name: b, servers: 'unix:/run/b'}]\n"),
        Faulty("listen: 0.0.0.0:80\nupstreams: [{name: b, servers: 'http://10.0.0.1'}]\n"),
        Faulty("listen: '[::]:80'\nupstreams: [{name: b, servers: 'http://127.0.0.1'}]\n"),
    ])
    func `an upstream that is the proxy itself is reported`(faulty: Faulty) {
        #expect(faulty.found == faulty.mistakes)
    }

    @Test func `an access log that is the configuration file is reported`() {
        let found: [String] =
            switch Configuration.load(text: "access-log: {target: /etc/c.yaml}\n", path: "/etc/c.yaml") {
            case .success: []
            case .failure(let mistakes): mistakes.all.map(\.description)
            }
        #expect(found == ["/etc/c.yaml:1:22: this is the configuration file itself; choose another file for the log"])
    }

    @Test func `one mistake hides no other, and all are reported in the order of the file`() {
        let faulty = Faulty(
            """
            routes:
              - upstream: nowhere
            wrkers: 4
            listen: [nowhere]
            clients:
              head-timeout: fast
              max-head-size: 1GiB
            """,
            "f:2:15: there is no upstream `nowhere`; name one of: origin",
            "f:3:1: `wrkers` is not known; did you mean `workers`?",
            "f:4:10: `listen: nowhere`: not an address to listen on: the port is missing; "
                + "give one such as `127.0.0.1:8080`, `[::1]:8080` or `unix:/path`",
            "f:6:17: `head-timeout: fast`: not understood; give a duration such as `500ms`, `30s` or `5m` (100ms to 1d)",
            "f:7:18: `max-head-size: 1GiB`: out of range; give a size such as `64KiB` (1KiB to 1MiB)")
        #expect(faulty.found == faulty.mistakes)
    }

    @Test func `columns are counted in characters, also after letters of several bytes`() {
        let faulty = Faulty(
            "{hosts: [käse.example], wrkers: 1}\n",
            "f:1:10: `hosts: käse.example`: not understood; give a host such as `www.example.com`, or `*.example.com`, without a port",
            "f:1:25: `wrkers` is not known; did you mean `workers`?")
        #expect(faulty.found == faulty.mistakes)
    }
}

private let server = "a URL such as `http://127.0.0.1:9000`, or `unix:/path`"
private let noPath =
    "the path of a Unix socket begins with `/`, has at most 107 bytes, no control characters, and is UTF-8; "
    + "give one such as `unix:/run/app.sock`"

@Suite struct `A mistake in who may ask` {
    @Test(arguments: [
        (
            "allow: [10.0.0.0/33]", 13,
            "`allow: 10.0.0.0/33`: not an address or a block of addresses: the prefix length after the slash is invalid; give one such as `127.0.0.1`, `10.0.0.0/8` or `fd00::/8`, or `unix`"
        ),
        (
            "deny: localhost", 11,
            "`deny: localhost`: not an address or a block of addresses: it is not an IP address; give one such as `127.0.0.1`, `10.0.0.0/8` or `fd00::/8`, or `unix`"
        ),
        ("rate-limit: 20/s", 17, "`rate-limit` is `{rate: …, burst: …, key: …}` or `none`, not a single value"),
        ("rate-limit: {burst: 5}", 17, "`rate-limit` needs `rate`; add it"),
        (
            "rate-limit: {rate: 20}", 24,
            "`rate: 20`: not understood; give a number of requests in a second, minute or hour such as `20/s`, `100/m` or `1000/h` (1 to 1000000)"
        ),
        (
            "rate-limit: {rate: 0/s}", 24,
            "`rate: 0/s`: out of range; give a number of requests in a second, minute or hour such as `20/s`, `100/m` or `1000/h` (1 to 1000000)"
        ),
        (
            "rate-limit: {rate: 20/d}", 24,
            "`rate: 20/d`: not understood; give a number of requests in a second, minute or hour such as `20/s`, `100/m` or `1000/h` (1 to 1000000)"
        ),
        (
            "rate-limit: {rate: 20/s, burst: 0}", 37,
            "`burst: 0`: out of range; give a whole number, or `rate` (1 to 1000000, or rate)"
        ),
        (
            "rate-limit: {rate: 20/s, key: user}", 35,
            "`key` is `client`, or `{header: NAME}` with the name of a request field"
        ),
        (
            "rate-limit: {rate: 20/s, key: {header: 'a b'}}", 44,
            "`header: a b`: not understood; give the name of a header field such as `accept-language`"
        ),
    ])
    func `is reported with its place and a remedy`(_ line: String, _ column: Int, _ message: String) {
        let faulty = Faulty("upstreams: [{name: a, servers: 'http://a'}]\nroutes:\n  - upstream: a\n    \(line)\n")
        #expect(faulty.found == ["f:4:\(column): \(message)"])
    }

    @Test(arguments: [
        (
            "clients: {max-connections-per-client: 0}",
            "f:1:39: `max-connections-per-client: 0`: out of range; give a whole number, or `none` (1 to 1000000, or none)"
        ),
        (
            "admin: {hosts: ['a:1']}",
            "f:1:17: `hosts: a:1`: not understood; give a host such as `www.example.com`, or `*.example.com`, without a port"
        ),
        (
            "admin: {token-file: token}",
            "f:1:21: `token-file: token`: not understood; give a path such as `/etc/coalesced/token`, or `none`"
        ),
    ])
    func `at the top is reported with its place and a remedy`(_ text: String, _ message: String) {
        #expect(Faulty("\(text)\nupstreams: [{name: a, servers: 'http://a'}]\n").found == [message])
    }

    @Test(arguments: [
        ("short", "the token in it has 5 characters; give it 16 or more, as `openssl rand -hex 32` does"),
        (
            "sixteen letters and spaces",
            "the token in it may have letters, digits and `-._~+/=` only; write another one"
        ),
    ])
    func `in the token of the admin listener is reported at the key that names the file`(
        _ content: String, _ reason: String
    ) {
        let text = "admin: {token-file: /t}\nupstreams: [{name: a, servers: 'http://a'}]\n"
        let (right, wrong) = (
            Files { _ in .success(Array("0123456789abcdef\n".utf8)) }, Files { _ in .success(Array(content.utf8)) }
        )
        let none = Files { _ in .failure(Files.Failure("No such file or directory", remedy: "create it")) }
        func found(_ files: Files) -> [String] {
            switch Configuration.load(text: text, path: "f", files: files) {
            case .success: []
            case .failure(let mistakes): mistakes.all.map(\.description)
            }
        }
        #expect(found(right).isEmpty)
        #expect(found(wrong) == ["f:1:21: `token-file: /t`: \(reason)"])
        #expect(
            found(none) == [
                "f:1:21: `token-file: /t` cannot be read: No such file or directory; create it"
            ])
    }
}

@Suite struct `A mistake in a listener with the PROXY protocol` {
    @Test(arguments: [
        (
            "listen: [{address: '127.0.0.1:80', proxy-protocol: true}]",
            "f:1:9: nobody may connect to 127.0.0.1:80: `proxy-protocol` is for the addresses in `clients.trusted-proxies`, which is empty; name the load balancers there"
        ),
        ("listen: [{proxy-protocol: false}]", "f:1:10: a listener needs `address`; add it"),
        ("listen: [{proxy-protocol: true}]", "f:1:10: a listener needs `address`; add it"),
        (
            "listen: [{address: '127.0.0.1:80', proxy-protocol: 2}]",
            "f:1:52: `proxy-protocol: 2`: not understood; give `true` or `false`"
        ),
        (
            "listen: [{address: '127.0.0.1:80', proxy: true}]",
            "f:1:36: `proxy` is not known; did you mean `proxy-protocol`?"
        ),
        (
            "listen: ['127.0.0.1:80', {address: '127.0.0.1:80'}]",
            "f:1:26: `listen` has `127.0.0.1:80` twice; remove one of them"
        ),
    ])
    func `is reported with its place and a remedy`(_ text: String, _ message: String) {
        #expect(Faulty("\(text)\nupstreams: [{name: a, servers: 'http://a'}]\n").found == [message])
    }
}

@Suite struct `A mistake in who may purge` {
    private static let remedy = "give one such as `127.0.0.1`, `10.0.0.0/8` or `fd00::/8`, or `unix`"

    @Test(arguments: [
        Faulty(
            "purge: {methods-from: [127.0.0.1, localhost]}\n",
            "f:1:35: `methods-from: localhost`: not an address or a block of addresses: it is not an IP address; \(remedy)"
        ),
        Faulty(
            "purge:\n  methods-from: [10.0.0.0/33]\n",
            "f:2:18: `methods-from: 10.0.0.0/33`: not an address or a block of addresses: the prefix length after the slash is invalid; \(remedy)"
        ),
        Faulty(
            "purge: {methods-from: {a: b}}\n",
            "f:1:23: `methods-from` is an address such as `127.0.0.1`, a block of them such as `10.0.0.0/8` or `fd00::/8`, or `unix`, not keys and values"
        ),
        Faulty(
            "purge: {method-from: [127.0.0.1]}\n",
            "f:1:9: `method-from` is not known; did you mean `methods-from`?"),
        Faulty(
            "purge: [127.0.0.1]\n",
            "f:1:8: `purge` must be keys and values (`key: value`), not a list"),
    ])
    func `is one line with its place and a remedy`(_ faulty: Faulty) {
        #expect(faulty.found == faulty.mistakes)
    }
}

@Suite struct `A mistake in a lifetime that replaces others` {
    private static let form = "a duration such as `500ms`, `30s` or `5m`, or `none`"

    @Test(arguments: [
        Faulty("caching: {ttl: long}\n", "f:1:16: `ttl: long`: not understood; give \(form) (0s to 365d, or none)"),
        Faulty("caching: {ttl: nonne}\n", "f:1:16: `ttl: nonne`: not understood; did you mean `none`?"),
        Faulty("caching: {ttl: 400d}\n", "f:1:16: `ttl: 400d`: out of range; give \(form) (0s to 365d, or none)"),
        Faulty("caching: {ttl: [5m]}\n", "f:1:16: `ttl` is \(form), not a list"),
        Faulty("caching: {ttl: }\n", "f:1:16: `ttl` is \(form), not nothing"),
        Faulty("caching: {ttl: {}}\n", "f:1:16: `ttl` is empty; give a duration, `none`, or one for a status"),
    ])
    func `names all that it may be`(faulty: Faulty) {
        #expect(faulty.found == faulty.mistakes)
    }

    @Test func `none and a duration are read`() throws {
        for text in ["caching: {ttl: none}", "caching: {ttl: 5m}", "caching: {ttl: {500: 1s}}"] {
            #expect(Faulty(text).found == [])
        }
    }
}
