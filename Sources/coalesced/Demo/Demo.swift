import Admin
import ArgumentParser
import Configuration
import Glibc
import Libevent
import Routing
import TLS
import Upstream

/// `coalesced demo`: runs the proxy in front of a deliberately slow origin, to show how it works.
struct Demo: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Run a demo: the proxy in front of a deliberately slow origin.",
        discussion: """
            It also answers https:// on port 8443 (on any other if that is taken, or --listen has port 0), with a certificate \
            that it makes for itself, which no client believes unless told to (curl -k). With --machines 3 there are three proxies, in processes of their own, which share what they fetch in a \
            redis-server that the demo starts for them, on a Unix socket that only this user can reach. All of them end \
            with the demo.
            """)

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("Address the proxy listens on.", valueName: "addr:port"),
        transform: Self.address(of:))
    var listen: SocketAddress = .ipv4(.loopback, port: 8080)

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "How many machines share what they fetch, at ports from that of --listen on. (default: 1, which shares nothing)",
            valueName: "n"))
    var machines: Int?

    /// The most machines: each takes a thread for each core.
    private static let mostMachines = 8

    func validate() throws {
        guard let machines else { return }
        guard 1...Self.mostMachines ~= machines else {
            throw ValidationError("--machines \(machines): give a number from 1 to \(Self.mostMachines).")
        }
        guard Int(listen.port ?? 0) + machines - 1 <= UInt16.max else {
            throw ValidationError(
                "--listen \(listen): there are no \(machines) ports from this one on; give a lower one.")
        }
    }

    private static func address(of text: String) throws -> SocketAddress {
        let address = try ScalarSyntax<SocketAddress>.address.value(of: text)
        if case .unix = address { throw ValidationError("the URLs of the demo need a port; give an address with one") }
        return address
    }

    func run() throws {
        let origin = try DemoOrigin.start()
        defer { origin.stop() }
        if let machines, machines > 1 { return try run(machines, originPort: origin.port) }
        var settings = Settings()
        var secure = ListenerSettings(try secureAddress())
        secure.isSecure = true
        settings.proxy.listen = [ListenerSettings(listen), secure]
        settings.proxy.tls.identities = [try TLSIdentity.selfSigned(names: ["localhost", "127.0.0.1", "::1"])]
        settings.upstreams = [
            UpstreamSettings(name: "demo", servers: [UpstreamServer(host: "127.0.0.1", port: origin.port)])
        ]
        // A free port: the default port may belong to another proxy on this machine.
        settings.admin.address = .ipv4(.loopback, port: 0)
        settings.logLevel = .warning
        try Daemon.run(settings, reloadingFrom: nil) { addresses in
            do throws(System.Failure) {
                try System.writeOutput(Self.welcome(addresses, originPort: origin.port) + "\n")
            } catch {
                System.writeError("standard output: \(error)\n")
            }
        }
    }

    /// The port for TLS, unless it is taken.
    private static let securePort: UInt16 = 8443

    /// Where clients speak TLS: on the same host as the others.
    private func secureAddress() throws -> SocketAddress {
        let usual = listen.withPort(Self.securePort)
        if listen.port != 0, listen != usual, try DemoOrigin.isFree(usual) { return usual }
        return try DemoOrigin.addresses(1, from: listen.withPort(0))[0]
    }

    private func run(_ count: Int, originPort: UInt16) throws {
        for signal in Daemon.endingSignals { System.holdBack(signal) }
        System.ignore(SIGPIPE)
        try DemoMachines.run(count, at: listen, originPort: originPort) { machines in
            do throws(System.Failure) {
                try System.writeOutput(Self.welcome(machines, originPort: originPort) + "\n")
            } catch {
                System.writeError("standard output: \(error)\n")
            }
        }
    }

    private static func welcome(_ demo: DemoMachines, originPort: UInt16) -> String {
        let machines = demo.machines
        let list = machines.enumerated().map { index, machine in
            "  machine \(index + 1)   http://\(machine.address)   process \(machine.process)   coalesced top --admin \(machine.admin)"
        }.joined(separator: "\n")
        let bases = machines.map { "http://\($0.address)" }
        let (first, last) = (machines[0], machines[machines.count - 1])
        return """

            \(machines.count) machines share what they fetch, in a redis-server of their own (process \(demo.engineProcess)):
            \(list)
            The origin on port \(originPort) is deliberately slow. Every request that reaches it is reported below.
            The machines have one name for their clients, `demo`. Try in another terminal:

              # clients of all machines, one fetch: a page that takes two seconds streams to all of them at once
              for i in $(seq 10); do for m in \(bases.joined(separator: " ")); do curl -sN -H 'Host: demo' $m/slow | tail -n 1 & done; done; wait
              # what one machine has fetched, another has: see Age and Cache-Status
              curl -s -H 'Host: demo' \(bases[0])/; curl -i -H 'Host: demo' \(bases[machines.count - 1])/
              # never shared: each client gets its own, all at the same time
              for m in \(bases.joined(separator: " ")); do curl -s -H 'Host: demo' $m/private & done; wait
              # purged on one machine, gone on all
              coalesced purge --admin \(first.admin) http://demo/slow; curl -i -H 'Host: demo' \(bases[machines.count - 1])/slow
              # one machine fails: the others have what it fetched
              curl -s -H 'Host: demo' \(bases[machines.count - 1])/clock; kill -9 \(last.process); curl -i -H 'Host: demo' \(bases[0])/clock
              # without the engine each goes on alone, and no client gets an error
              kill -9 \(demo.engineProcess); for i in 1 2 3; do curl -s -H 'Host: demo' \(bases[0])/slow | tail -n 1; done

            Press Control-C to stop.

            """
    }

    private static func welcome(_ addresses: Daemon.Addresses, originPort: UInt16) -> String {
        let base = "http://\(addresses.listeners.first.map { "\($0)" } ?? "127.0.0.1")"
        let secure = addresses.listeners.dropFirst().first.map { "https://\($0)" } ?? ""
        let admin = addresses.admin.map { "\($0)" } ?? ""
        return """

            The origin on port \(originPort) is deliberately slow. Every request that reaches it is reported below.
            Try in another terminal:

              # fifty clients, one fetch: a page that takes two seconds streams to all of them at once
              for i in $(seq 50); do curl -sN \(base)/slow | tail -n 1 & done; wait
              # a stored response, with its Age and Cache-Status
              curl -i \(base)/slow
              # the same over TLS; -k, since the demo has made its certificate itself
              curl -ik \(secure)/slow
              # never shared: each client gets its own, all at the same time
              for i in 1 2 3; do curl -s \(base)/private & done; wait
              # changes every 5 s; revalidated or fetched again, never served older than that
              curl -i \(base)/clock
              # fails every third time, but no client notices: the stored response is served instead
              for i in $(seq 6); do curl -s -o /dev/null -w '%{http_code}\\n' \(base)/flaky; sleep 1.5; done
              # what happened
              curl -s http://\(admin)/metrics | grep -E 'coalescing|verdicts' | grep -v ' 0$'

            Press Control-C to stop.

            """
    }
}
