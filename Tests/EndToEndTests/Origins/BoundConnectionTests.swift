import Synchronization
import Testing

/// NTLM and Negotiate authenticate a connection: what comes on it afterwards is answered as from that user, with no field
/// that says so. Such a connection to the origin is one client connection's own.
@Suite(.scenario) struct BoundConnectionTests {
    /// Who is known on which connection of the origin.
    private final class Users: Sendable {
        private let known = Mutex<[Int: String]>([:])

        /// A server that authenticates connections: two challenges, then the user, until the connection ends.
        func answer(_ request: Received, _ challenge: String, _ fields: String...) -> [Step] {
            let (status, asks) = challenge.contains("Proxy") ? (407, "Proxy-Authorization") : (401, "Authorization")
            let credentials = request[asks]?.split(separator: " ").last.map(String.init)
            let user = known.withLock { known -> String? in
                if let credentials { known[request.connection] = credentials }
                return known[request.connection]
            }
            switch user {
            case nil: return [.requestBody, .start(status, [challenge, "Content-Length: 0"] + fields)]
            case "hello": return [.requestBody, .start(status, ["\(challenge) more", "Content-Length: 0"] + fields)]
            case let user?:
                let text = "hello \(user)"
                return [.requestBody, .start(200, ["Content-Length: \(text.utf8.count)"] + fields), .text(text)]
            }
        }
    }

    private static func ask(
        _ client: Conversation, _ proxy: Program, _ target: String, method: String = "GET", _ fields: String...
    ) throws -> Answer {
        try client.send(proxy.request(method, target, fields, body: method == "POST" ? "x" : nil))
        return try client.answer(to: method)
    }

    /// A client that has said who it is.
    private static func alice(
        _ proxy: Program, _ target: String = "/page", scheme: String = "NTLM", field: String = "Authorization"
    ) throws -> Conversation {
        let client = try proxy.connect()
        let statuses = [
            try ask(client, proxy, target).status, try ask(client, proxy, target, "\(field): \(scheme) hello").status,
            try ask(client, proxy, target, "\(field): \(scheme) alice").status,
        ]
        #expect(statuses == (field == "Authorization" ? [401, 401, 200] : [407, 407, 200]))
        return client
    }

    @Test(arguments: [
        ("WWW-Authenticate: NTLM", "NTLM", "Authorization"),
        ("www-authenticate: negotiate", "NEGOTIATE", "Authorization"),
        ("WWW-Authenticate: Basic realm=\"a, b\", Negotiate, NTLM", "Ntlm", "Authorization"),
        ("Proxy-Authenticate: NTLM", "NTLM", "Proxy-Authorization"),
    ])
    func `an authenticated connection keeps its user, and no other client is taken for that user`(
        challenge: String, scheme: String, field: String
    ) throws {
        try scenario(.workers(1)) { origin, proxy in
            let users = Users()
            origin.on("*") { users.answer($0, challenge) }
            let alice = try Self.alice(proxy, scheme: scheme, field: field)
            // Without credentials: only the connection tells.
            #expect(try Self.ask(alice, proxy, "/page").text == "hello alice")
            #expect(try Self.ask(alice, proxy, "/other", method: "POST").text == "hello alice")
            for method in ["GET", "POST"] {
                let answer = try proxy.send(method, "/page", body: method == "POST" ? "x" : nil)
                #expect(answer.status == (field == "Authorization" ? 401 : 407))
            }
            #expect(try Self.ask(alice, proxy, "/page").text == "hello alice")
            let own = Set(origin.requests("/page").filter { $0[field] != nil }.map(\.connection))
            #expect(own.count == 1)
        }
    }

    @Test func `a response on a bound connection is neither stored nor shared, and neither is a challenge`() throws {
        try scenario(.workers(1), .accessLog) { origin, proxy in
            let users = Users()
            origin.on("*") { users.answer($0, "WWW-Authenticate: NTLM", "Cache-Control: public, max-age=600") }
            let alice = try Self.alice(proxy)
            let answer = try Self.ask(alice, proxy, "/page")
            #expect(
                answer.text == "hello alice" && answer["cache-status"]?.hasSuffix("detail=bound-connection") == true)
            let other = try proxy.get("/page")
            #expect(other.status == 401 && other["cache-status"]?.hasSuffix("detail=status") == true)
            #expect(try proxy.get("/page").status == 401)
            #expect(origin.count("/page") == 6)
        }
    }

    @Test func `a request on a bound connection joins no fetch, and its own fetch is not joined`() throws {
        try scenario(.workers(1)) { origin, proxy in
            let users = Users()
            let gate = Gate()
            origin.on("*") { users.answer($0, "WWW-Authenticate: NTLM") }
            let alice = try Self.alice(proxy)
            origin.on("/slow") { [.gate(gate)] + users.answer($0, "WWW-Authenticate: NTLM") }
            try alice.send(proxy.request("GET", "/slow"))
            try eventually("hers is asked") { origin.count("/slow") == 1 }
            let crowd = proxy.crowd(3, get: "/slow")
            try eventually("theirs is asked beside it") { origin.count("/slow") == 2 }
            let second = try Self.alice(proxy, "/page2")
            try second.send(proxy.request("GET", "/slow"))
            try eventually("so is hers on another connection") { origin.count("/slow") == 3 }
            gate.open()
            #expect(try alice.answer().text == "hello alice")
            #expect(try second.answer().text == "hello alice")
            #expect(crowd.finished().allSatisfy { $0.status == 401 })
        }
    }

    @Test func `a bound connection ends with its client connection`() throws {
        try scenario(.workers(1)) { origin, proxy in
            let users = Users()
            origin.on("*") { users.answer($0, "WWW-Authenticate: NTLM") }
            let alice = try Self.alice(proxy)
            #expect(origin.openConnections == 1)
            alice.close()
            try eventually("it is closed") { try origin.openConnections == 0 && proxy.metric(.openUpstreams) == 0 }
        }
    }

    @Test func `a connection with a challenge for connection credentials is not used for other clients`() throws {
        try scenario(.workers(1)) { origin, proxy in
            let users = Users()
            origin.on("*") { users.answer($0, "WWW-Authenticate: NTLM") }
            let statuses = try (1...3).map { _ in try proxy.get("/page").status }
            #expect(statuses == [401, 401, 401])
            #expect(Set(origin.requests("/page").map(\.connection)).count == 3)
        }
    }

    @Test func `after a bound connection is closed the client authenticates again, and no POST is lost`() throws {
        try scenario(.workers(1)) { origin, proxy in
            let users = Users()
            origin.on("*") { users.answer($0, "WWW-Authenticate: NTLM") }
            let alice = try Self.alice(proxy)
            origin.closeIdleConnections()
            try eventually("the program knows") { try proxy.metric(.openUpstreams) == 0 }
            #expect(try Self.ask(alice, proxy, "/page", method: "POST").status == 401)
            #expect(try Self.ask(alice, proxy, "/page", "Authorization: NTLM alice").text == "hello alice")
            #expect(try Self.ask(alice, proxy, "/page", method: "POST").text == "hello alice")
        }
    }

    @Test func `a bound connection is not closed after idle-timeout`() throws {
        try scenario(.workers(1), .other(section: "upstream", key: "idle-timeout", value: "100ms")) { origin, proxy in
            let users = Users()
            origin.on("*") { users.answer($0, "WWW-Authenticate: NTLM") }
            let alice = try Self.alice(proxy)
            System.nap(.milliseconds(600))
            #expect(try Self.ask(alice, proxy, "/page", method: "POST").text == "hello alice")
        }
    }

    @Test func `a public stored response is a hit on an authenticated connection too`() throws {
        try scenario(.workers(1)) { origin, proxy in
            let users = Users()
            origin.on("/logo") { _ in [.answer(200, "Cache-Control: max-age=600", body: "logo")] }
            origin.on("/page") { users.answer($0, "WWW-Authenticate: NTLM") }
            try proxy.get("/logo")
            let alice = try Self.alice(proxy)
            #expect(try Self.ask(alice, proxy, "/logo").text == "logo")
            #expect(origin.count("/logo") == 1)
        }
    }

    @Test func `Basic and Bearer authenticate a request and bind no connection`() throws {
        try scenario(.workers(1)) { origin, proxy in
            origin.on("*") { request in
                request["Authorization"] == nil
                    ? [.answer(401, "WWW-Authenticate: Basic realm=\"NTLM\"")] : [.answer(200, body: "yes")]
            }
            let answers = try [
                proxy.get("/page"), proxy.get("/page", "Authorization: Bearer NTLM"), proxy.get("/page"),
            ]
            #expect(answers.map(\.status) == [401, 200, 401])
            #expect(origin.acceptedConnections == 1)
        }
    }
}
