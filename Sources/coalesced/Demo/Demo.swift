import Admin
import ArgumentParser
import Configuration
import Libevent
import Routing
import Upstream

/// `coalesced demo`: runs the proxy in front of a deliberately slow origin, to show how it works.
struct Demo: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Run a demo: the proxy in front of a deliberately slow origin.")

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("Address the proxy listens on.", valueName: "addr:port"),
        transform: Self.address(of:))
    var listen: SocketAddress = .ipv4(.loopback, port: 8080)

    private static func address(of text: String) throws -> SocketAddress {
        let address = try ScalarSyntax<SocketAddress>.address.value(of: text)
        if case .unix = address { throw ValidationError("the URLs of the demo need a port; give an address with one") }
        return address
    }

    func run() throws {
        let origin = try DemoOrigin.start()
        defer { origin.stop() }
        var settings = Settings()
        settings.proxy.listeners = [listen]
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

    private static func welcome(_ addresses: Daemon.Addresses, originPort: UInt16) -> String {
        let base = "http://\(addresses.listeners.first.map { "\($0)" } ?? "127.0.0.1")"
        let admin = addresses.admin.map { "\($0)" } ?? ""
        return """

            The origin on port \(originPort) is deliberately slow. Every request that reaches it is reported below.
            Try in another terminal:

              # fifty clients, one fetch: a page that takes two seconds streams to all of them at once
              for i in $(seq 50); do curl -sN \(base)/slow | tail -n 1 & done; wait
              # a stored response, with its Age and Cache-Status
              curl -i \(base)/slow
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
