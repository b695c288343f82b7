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

    @Test(arguments: Variables.all.map(\.name))
    func `a wrong value is one mistake with the variable's name`(_ name: String) {
        let result = Configuration.load(
            text: "workers: 1", path: "f", variables: Variables([name: "no \u{7}, such value"]))
        guard case .failure(let mistakes) = result else {
            Issue.record("taken")
            return
        }
        #expect(mistakes.all.count == 1 && mistakes.all[0].description.hasPrefix("\(name): `"))
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
    }
}
