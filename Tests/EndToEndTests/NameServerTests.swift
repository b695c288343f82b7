import Glibc
import Testing

/// Where names come from, in a network of the program's own.
@Suite(.scenario, .enabled(if: OwnNetwork.isToBeHad)) struct NameServerTests {
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

    @Test func `a name server that does not answer is told of like anything else`() throws {
        let folder = try System.makeTemporaryFolder()
        let (program, place) = try serve(in: folder, Self.silent, upstream: "http://app.test:9000")
        defer { program.stop() }
        #expect(try place.get("/x", "Host: a").status == 502)
        let told = program.diagnostics.split(separator: "\n").first { $0.contains("Nameserver") }
        #expect(told?.contains(#/^\S+Z warning: libevent: Nameserver 192\.0\.2\.53:53 has failed/#) == true)
        #expect(program.diagnostics.contains("resolve: app.test: no name server answered in time"))
    }

    @Test func `nor does it hold up a worker when nobody reads the messages`() throws {
        let folder = try System.makeTemporaryFolder()
        let messages = try Pipe(at: "\(folder)/stderr")
        let (program, place) = try serve(in: folder, Self.silent, upstream: "http://app.test:9000")
        defer { program.stop() }
        try messages.fill()
        for number in 1...3 { #expect(try place.get("/\(number)", "Host: a").status == 502) }
        program.terminate()
        #expect(try program.exited() == .code(0))
    }

    @Test func `an address of a family that this machine has on the loopback only is used all the same`() throws {
        let folder = try System.makeTemporaryFolder()
        let network = OwnNetwork(hosts: "::1 six.test\n", nameServers: Self.silent.nameServers)
        let (program, place) = try serve(in: folder, network, upstream: "http://six.test:9")
        defer { program.stop() }
        #expect(try place.get("/x", "Host: a").status == 502)
        #expect(program.diagnostics.contains("connect: [::1]:9"))
    }

    @Test func `what is told of a failure is not that this machine has no IPv6`() throws {
        let folder = try System.makeTemporaryFolder()
        let network = OwnNetwork(
            hosts: "127.0.0.1 both.test\n2001:db8::1 both.test\n", nameServers: Self.silent.nameServers)
        let (program, place) = try serve(in: folder, network, upstream: "http://both.test:9")
        defer { program.stop() }
        #expect(try place.get("/x", "Host: a").status == 502)
        #expect(program.diagnostics.contains("connect: 127.0.0.1:9: Connection refused"))
    }

    @Test func `connections to an address that a name no longer has are not used again`() throws {
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
}
