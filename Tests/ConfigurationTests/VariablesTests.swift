import Routing
import Storage
import Testing

@testable import Configuration

@Suite struct `Environment variables` {
    @Test func `each key outside of upstreams and routes has a variable of its own`() {
        let all = Variables.all
        #expect(all.count > 60 && Set(all.map(\.name)).count == all.count)
        let keys = Set(all.map(\.key))
        for key in KeyTable.all where !["upstreams", "routes"].contains(key.name) {
            for name in key.children.isEmpty ? [key.name] : key.children.map({ "\(key.name).\($0.name)" }) {
                #expect(keys.contains(name))
            }
        }
    }

    /// Each of them is wrong for most keys, and the second one for all.
    private static let wrongValues = [
        "", "no \u{7}\n, such value", "[127.0.0.1:1, 127.0.0.1:2]", "-1", "99999999999999999999999", "1 fortnight",
        "http://me:hidden@here/", "me:hidden@here", String(repeating: "é", count: 5_000),
    ]

    /// One line with the place, the value and what to do.
    private static func expectLine(_ mistake: Mistake, at place: String) {
        let line = mistake.description
        #expect(line.hasPrefix("\(place): `") && line.count < 500, "\(line)")
        #expect(!line.unicodeScalars.contains { $0.properties.generalCategory == .control }, "\(line)")
        #expect(!line.contains("hidden"), "\(line)")
        #expect(line.contains(#/[;:] (give|use|write|remove|did you mean|a path must) /#), "\(line)")
    }

    @Test(arguments: Variables.all)
    func `a wrong value is one line with the variable's name and the remedy`(_ variable: (name: String, key: String)) {
        for value in Self.wrongValues {
            let result = Configuration.load(
                text: "workers: 1", path: "f", variables: Variables([variable.name: value]))
            guard case .failure(let mistakes) = result else {
                #expect(value != Self.wrongValues[1], "taken")
                continue
            }
            #expect(mistakes.all.count == 1)
            Self.expectLine(mistakes.all[0], at: variable.name)
        }
    }

    @Test(arguments: Variables.all)
    func `a wrong value in the file is one line with its place and the remedy`(
        _ variable: (name: String, key: String)
    ) {
        let names = variable.key.split(separator: ".")
        for value in Self.wrongValues.dropFirst() {
            let quoted = value.map { $0 == "\u{7}" ? "\\a" : $0 == "\n" ? "\\n" : String($0) }.joined()
            let text = names.enumerated().map { "\(String(repeating: " ", count: $0))\($1):" }.joined(separator: "\n")
            let result = Configuration.load(text: "\(text) \"\(quoted)\"\n", path: "f")
            guard case .failure(let mistakes) = result else {
                #expect(value != Self.wrongValues[1], "taken")
                continue
            }
            #expect(mistakes.all.count == 1)
            let column = names.count - 1 + (names.last?.count ?? 0) + 3
            Self.expectLine(mistakes.all[0], at: "f:\(names.count):\(column)")
        }
    }

    @Test func `a list in brackets is told how lists are written`() {
        let variables = Variables(["COALESCED_LISTEN": "[127.0.0.1:1, 127.0.0.1:2]", "COALESCED_HOSTS": "[a, b]"])
        guard case .failure(let mistakes) = Configuration.load(text: "workers: 1", path: "f", variables: variables)
        else {
            Issue.record("taken")
            return
        }
        let advice = "a list has no brackets here; give its entries separated by commas"
        #expect(
            mistakes.all.map(\.description) == [
                "COALESCED_HOSTS: `[a, b]`: \(advice)",
                "COALESCED_LISTEN: `[127.0.0.1:1, 127.0.0.1:2]`: \(advice)",
            ])
        let addresses = Variables(["COALESCED_LISTEN": "[::1]:1,[::2]:2"])
        let settings = try? Configuration.load(text: "workers: 1", path: "f", variables: addresses).get()
        #expect(settings?.proxy.listeners.count == 2)
    }

    /// As in a pod: of the services `coalesced`, with two ports, and `coalesced-admin`.
    private static let kubernetes = [
        "COALESCED_SERVICE_HOST": "10.96.0.7", "COALESCED_SERVICE_PORT": "80", "COALESCED_SERVICE_PORT_HTTP": "80",
        "COALESCED_SERVICE_PORT_MORE_HTTP": "81", "COALESCED_PORT": "tcp://10.96.0.7:80",
        "COALESCED_PORT_80_TCP": "tcp://10.96.0.7:80", "COALESCED_PORT_80_TCP_PROTO": "tcp",
        "COALESCED_PORT_80_TCP_PORT": "80", "COALESCED_PORT_80_TCP_ADDR": "10.96.0.7",
        "COALESCED_PORT_81_UDP_ADDR": "10.96.0.7", "COALESCED_ADMIN_SERVICE_HOST": "10.96.0.8",
        "COALESCED_ADMIN_SERVICE_PORT": "8081", "COALESCED_ADMIN_PORT": "tcp://10.96.0.8:8081",
        "COALESCED_ADMIN_PORT_8081_TCP": "tcp://10.96.0.8:8081",
    ]

    @Test func `the variables that Kubernetes makes for a service named coalesced mean nothing`() throws {
        let settings = try Configuration.load(
            text: "workers: 1", path: "f", variables: Variables(Self.kubernetes)
        ).get()
        #expect(settings.warnings.isEmpty, "\(settings.warnings)")
        for (name, _) in Variables.all {
            // None of them hides a key.
            let result = Configuration.load(text: "workers: 1", path: "f", variables: Variables([name: "tcp://\u{7}"]))
            #expect(throws: Mistakes.self, "\(name)") { try result.get() }
        }
    }

    @Test(arguments: [
        ("COALESCED_PORT", "8080"), ("COALESCED_ADMIN_PORT", "8081"), ("COALESCED_LISTEN_PORT", "127.0.0.1:8080"),
        ("COALESCED_SERVICE", "x"), ("COALESCED_STORAG_MEMORY", "1GiB"), ("COALESCED_HOST", "a.example"),
        ("COALESCED_", "x"),
    ])
    func `a variable that no key has is named`(_ name: String, _ value: String) throws {
        let variables = Variables(Self.kubernetes.merging([name: value]) { $1 })
        let settings = try Configuration.load(text: "workers: 1", path: "f", variables: variables).get()
        #expect(
            settings.warnings.map(\.description).allSatisfy { $0.hasPrefix("\(name): no key has this variable; ") }
                && settings.warnings.count == 1, "\(settings.warnings)")
    }

    @Test func `the file, variables and flags override one another in this order`() throws {
        var flags = Overrides()
        flags.memory = 3 << 20
        let text = "workers: 1\nbacklog: 1\nstorage: {memory: 1MiB, max-object-size: 1KiB}"
        let variables = Variables([
            "COALESCED_BACKLOG": "2", "COALESCED_STORAGE_MEMORY": "2MiB", "COALESCED_CLIENTS_MAX_CONNECTIONS": "9",
        ])
        let settings = try Configuration.load(text: text, path: "f", variables: variables, overriddenBy: flags).get()
        #expect(settings.proxy.workers == 1 && settings.proxy.backlog == 2 && settings.storage.memory == 3 << 20)
        #expect(settings.proxy.clients.maxConnections == 9 && settings.statesMaxConnections)
    }

    @Test func `user names and passwords of URLs are masked`() {
        #expect(Spelling.masked("a http://u:p@h/x, b ftp://u@h") == "a http://***@h/x, b ftp://***@h")
        #expect(Spelling.masked("http://h/@x") == "http://h/@x")
        #expect(Spelling.shown("http://u:p@h") == "http://***@h")
        // What is no URL may be meant for one.
        for (text, shown) in [
            ("u:p@h", "***@h"), ("http://u:p/#?@h:80", "http://***@h:80"), ("http:/u:p@h", "***@h"),
            ("http//u:p@h", "***@h"), ("http://u:p q@h", "http://***@h"),
            ("http://a.example, u:p@h", "http://***@h"), ("unix:/run/a@b", "unix:/run/a@b"),
            ("127.0.0.1:80", "127.0.0.1:80"), ("a@b", "a@b"), ("http://h/@x", "http://h/@x"),
            ("redis://p/q@h", "redis://***@h"), ("unix://u:p/q@/run/r", "unix://***@/run/r"),
            ("unix:///run/a@b", "unix:///run/a@b"),
        ] {
            #expect(Spelling.shown(text) == shown)
        }
    }
}
