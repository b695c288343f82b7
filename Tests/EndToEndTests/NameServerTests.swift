import Glibc
import Testing

/// Where names come from, in a network of the program's own.
@Suite(.scenario, .enabled(if: OwnNetwork.isToBeHad)) struct NameServerTests {
    private static let silent = OwnNetwork(nameServers: "nameserver \(OwnNetwork.silentNameServer)\noptions timeout:1 attempts:1 max-timeouts:1\n")

    private func serve(in folder: String, _ network: OwnNetwork, upstream: String) throws -> (program: Program, place: Address) {
        let program = try Program(
            folder: folder, in: network, ["--listen", "unix:\(folder)/s", "--upstream", upstream, "--workers", "1"])
        let place = Address(endpoint: .unix("\(folder)/s"))
        try eventually("it listens") { (try? place.connect()) != nil }
        return (program, place)
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
        let network = OwnNetwork(hosts: "127.0.0.1 both.test\n2001:db8::1 both.test\n", nameServers: Self.silent.nameServers)
        let (program, place) = try serve(in: folder, network, upstream: "http://both.test:9")
        defer { program.stop() }
        #expect(try place.get("/x", "Host: a").status == 502)
        #expect(program.diagnostics.contains("connect: 127.0.0.1:9: connect: Connection refused"))
    }
}
