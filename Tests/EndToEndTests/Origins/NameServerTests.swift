import Glibc
import Libevent
import NameServing
import Testing

/// Where names come from, in a network of the program's own.
@Suite(.scenario, .enabled(if: OwnNetwork.isToBeHad), .originsInTheClear("the URLs of the names are of http"))
struct NameServerTests {
    private static let silent = OwnNetwork(
        nameServers: "nameserver \(OwnNetwork.silentNameServer)\noptions timeout:1 attempts:1 max-timeouts:1\n")

    private func serve(in folder: String, _ network: OwnNetwork, upstream: String) throws -> (
        program: Program, place: Address
    ) {
        let program = try Program(
            folder: folder, in: network, ["--listen", "unix:\(folder)/s", "--upstream", upstream, "--workers", "1"])
        let place = Address(endpoint: .unix("\(folder)/s"))
        try eventually("it listens") { (try? place.connect()) != nil }
        return (program, place)
    }

    @Test func `a silent name server is reported like any other failure`() throws {
        let folder = try System.makeTemporaryFolder()
        let (program, place) = try serve(in: folder, Self.silent, upstream: "http://app.test:9000")
        defer { program.stop() }
        let answer = try place.get("/x", "Host: a")
        #expect(answer.status == 502 && answer["proxy-status"]?.contains("dns_error") == true)
        #expect(program.diagnostics.contains("resolve: app.test: no name server answered in time"))
    }

    @Test func `a silent name server does not block a worker whose messages are not read`() throws {
        let folder = try System.makeTemporaryFolder()
        let messages = try Pipe(at: "\(folder)/stderr")
        let (program, place) = try serve(in: folder, Self.silent, upstream: "http://app.test:9000")
        defer { program.stop() }
        try messages.fill()
        for number in 1...3 { #expect(try place.get("/\(number)", "Host: a").status == 502) }
        program.terminate()
        #expect(try program.exited() == .code(0))
    }

    @Test func `an address whose family exists only on the loopback is used all the same`() throws {
        let folder = try System.makeTemporaryFolder()
        let network = OwnNetwork(hosts: "::1 six.test\n", nameServers: Self.silent.nameServers)
        let (program, place) = try serve(in: folder, network, upstream: "http://six.test:9")
        defer { program.stop() }
        #expect(try place.get("/x", "Host: a").status == 502)
        #expect(program.diagnostics.contains("connect: [::1]:9"))
    }

    @Test func `a failed connection is reported with the refusal, not with missing IPv6`() throws {
        let folder = try System.makeTemporaryFolder()
        let network = OwnNetwork(
            hosts: "127.0.0.1 both.test\n2001:db8::1 both.test\n", nameServers: Self.silent.nameServers)
        let (program, place) = try serve(in: folder, network, upstream: "http://both.test:9")
        defer { program.stop() }
        #expect(try place.get("/x", "Host: a").status == 503)
        #expect(program.diagnostics.contains("connect: 127.0.0.1:9: Connection refused"))
    }

    @Test func `connections to an address that a name has lost are not reused`() throws {
        let before = try ScriptedOrigin()
        let after = try ScriptedOrigin(port: before.port, last: 2)
        defer { for origin in [before, after] { origin.stop() } }
        let gate = Gate()
        before.on("*") { _ in [.answer(200, "Cache-Control: no-store", body: "before")] }
        before.on("/slow") { _ in [.gate(gate), .answer(200, "Cache-Control: no-store", body: "before")] }
        after.on("*") { _ in [.answer(200, "Cache-Control: no-store", body: "after")] }
        let folder = try System.makeTemporaryFolder()
        let files = OwnNetwork(hosts: "127.0.0.1 moves.test\n", nameServers: Self.silent.nameServers, isShared: true)
        let (program, place) = try serve(in: folder, files, upstream: "http://moves.test:\(before.port)")
        defer { program.stop() }
        // One connection in use, and one idle.
        let slow = try place.connect()
        try slow.send(place.request("GET", "/slow", ["Host: a"]))
        try eventually("it is asked") { before.count("/slow") == 1 }
        #expect(try place.get("/x", "Host: a").text == "before")
        #expect(try place.get("/x", "Host: a").text == "before")
        #expect(before.openConnections == 2)

        try OwnNetwork.rewrite(hosts: "127.0.0.2 moves.test\n", in: folder)
        program.signal(SIGHUP)
        try eventually("the new address is asked") { try place.get("/x", "Host: a").text == "after" }
        try eventually("the idle connection is closed") { before.openConnections == 1 }
        gate.open()
        #expect(try slow.answer().text == "before")
        try eventually("that in use is closed") { before.openConnections == 0 }
        for _ in 1...3 { #expect(try place.get("/x", "Host: a").text == "after") }
        #expect(after.acceptedConnections == 1)
    }

    // MARK: A name server that answers, with this machine's network

    private static func address(_ last: UInt8) -> SocketAddress { .ipv4(IPv4Address(127, 0, 0, last), port: 0) }

    private static func files(_ server: NameServer) -> OwnNetwork {
        OwnNetwork(nameServers: "nameserver 127.0.0.1:\(server.port)\noptions timeout:1\n", isShared: true)
    }

    /// Answers everything with its name, never to be stored.
    private static func origin(_ name: String, port: UInt16 = 0, last: UInt8 = 1) throws -> ScriptedOrigin {
        let origin = try ScriptedOrigin(port: port, last: last)
        origin.on("*") { _ in [.answer(200, "Cache-Control: no-store", body: name)] }
        return origin
    }

    @Test func `a name with 41 addresses is resolved over TCP`() throws {
        let server = try NameServer(largestDatagram: 512) { _ in .addresses((1...41).map(Self.address)) }
        defer { server.stop() }
        let origin = try Self.origin("found")
        defer { origin.stop() }
        let folder = try System.makeTemporaryFolder()
        let (program, place) = try serve(in: folder, Self.files(server), upstream: "http://many.test:\(origin.port)")
        defer { program.stop() }
        let answer = try place.get("/x", "Host: a")
        #expect(answer.status == 200 && answer.text == "found")
        #expect(server.questions.contains { $0.isTCP && $0.name == "many.test" })
    }

    @Test func `a name is resolved again when its time to live ends, however long resolve-ttl is`() throws {
        let server = try NameServer { _ in .addresses([Self.address(1)], seconds: 1) }
        defer { server.stop() }
        let before = try Self.origin("before")
        let after = try Self.origin("after", port: before.port, last: 2)
        defer { for origin in [before, after] { origin.stop() } }
        let folder = try System.makeTemporaryFolder()
        let (program, place) = try serve(in: folder, Self.files(server), upstream: "http://moves.test:\(before.port)")
        defer { program.stop() }
        #expect(try place.get("/x", "Host: a").text == "before")
        server.change { _ in .addresses([Self.address(2)], seconds: 1) }
        // The default of resolve-ttl is 30 s.
        try eventually("the new address is asked", within: .seconds(15)) {
            try place.get("/x", "Host: a").text == "after"
        }
    }

    @Test(arguments: [.code(3), .addresses([], seconds: 1)] as [NameServer.Reply])
    func `a name that is gone has no address any more, not even that of an idle connection`(reply: NameServer.Reply)
        throws
    {
        let server = try NameServer { _ in .addresses([Self.address(1)], seconds: 1) }
        defer { server.stop() }
        let origin = try Self.origin("before")
        defer { origin.stop() }
        let folder = try System.makeTemporaryFolder()
        let (program, place) = try serve(in: folder, Self.files(server), upstream: "http://gone.test:\(origin.port)")
        defer { program.stop() }
        #expect(try place.get("/x", "Host: a").text == "before")
        server.change { _ in reply }
        try eventually("nothing is sent there", within: .seconds(15)) {
            try place.get("/x", "Host: a").status == 502 && origin.openConnections == 0
        }
        #expect(try place.get("/x", "Host: a").status == 502)
        server.change { _ in .addresses([Self.address(1)], seconds: 1) }
        try eventually("it is back", within: .seconds(15)) { try place.get("/x", "Host: a").text == "before" }
    }

    @Test func `while no name server responds, expired addresses are used, and reported once`()
        throws
    {
        let server = try NameServer { _ in .addresses([Self.address(1)], seconds: 1) }
        defer { server.stop() }
        let origin = try ScriptedOrigin()
        defer { origin.stop() }
        // Each request needs a new connection, and so an address.
        origin.on("*") { _ in [.answer(200, "Cache-Control: no-store\r\nConnection: close", body: "x")] }
        let folder = try System.makeTemporaryFolder()
        let (program, place) = try serve(in: folder, Self.files(server), upstream: "http://app.test:\(origin.port)")
        defer { program.stop() }
        #expect(try place.get("/x", "Host: a").status == 200)
        server.change { _ in .code(2) }
        let told = "cannot look up app.test"
        try eventually("its time is over", within: .seconds(15)) {
            let answer = try place.get("/x", "Host: a")
            #expect(answer.status == 200)
            return program.diagnostics.contains(told)
        }
        let asked = server.questions.count
        try eventually("it is asked for again and again", within: .seconds(20)) {
            let answer = try place.get("/x", "Host: a")
            #expect(answer.status == 200)
            return server.questions.count > asked + 4
        }
        #expect(program.diagnostics.components(of: told) == 1)
        server.change { _ in .addresses([Self.address(1)], seconds: 1) }
        try eventually("it is back", within: .seconds(20)) {
            let answer = try place.get("/x", "Host: a")
            #expect(answer.status == 200)
            return program.diagnostics.contains("app.test can be looked up again")
        }
    }
}

extension String {
    fileprivate func components(of part: String) -> Int { ranges(of: part).count }
}
