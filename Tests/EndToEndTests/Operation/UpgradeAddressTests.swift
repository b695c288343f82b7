import Glibc
import Testing

/// The addresses of an upgrade: they may move, and a new program that fails takes no client with it.
@Suite(.scenario) struct UpgradeAddressTests {
    private static let rounds = System.environment("COALESCED_TEST_ROUNDS").flatMap { Int($0) } ?? 1

    @Test func `an upgrade to more workers that fails costs no client its connection`() throws {
        try scenario(.workers(1)) { origin, proxy in
            origin.on("/x") { _ in [.answer(200, "Cache-Control: max-age=600", body: "x")] }
            let clients = Passersby(50, at: proxy, get: "/x", expecting: "x")
            try proxy.rewriteConfiguration(
                upstream: origin.url, .workers(8),
                .other(section: "access-log", key: "target", value: "\(proxy.folder)/none/access.log"))
            for round in 1...(10 * Self.rounds) {
                proxy.signal(SIGUSR2)
                try eventually("it fails; \(proxy.diagnostics.suffix(1000))", within: .seconds(30)) {
                    proxy.diagnostics.matches(of: /not upgraded: \/.* ended with exit code/).count == round
                }
            }
            let failures = try clients.stop(after: UpgradeTests.requests)
            #expect(failures.isEmpty, "\(failures.count) of \(clients.served): \(failures.prefix(5))")
            #expect(proxy.successors.isEmpty && proxy.exit() == nil)
        }
    }

    /// Lets one worker watch no listening socket any more, once there is a file.
    private static let failingWorker = """
        #define _GNU_SOURCE
        #include <dlfcn.h>
        #include <errno.h>
        #include <pthread.h>
        #include <stdlib.h>
        #include <string.h>
        #include <sys/epoll.h>
        #include <sys/socket.h>
        #include <unistd.h>
        int epoll_ctl(int epoll, int operation, int descriptor, struct epoll_event *event) {
            int (*next)(int, int, int, struct epoll_event *) = dlsym(RTLD_NEXT, "epoll_ctl");
            char name[16] = "";
            int listens = 0;
            socklen_t length = sizeof listens;
            pthread_getname_np(pthread_self(), name, sizeof name);
            if (operation == EPOLL_CTL_ADD && strcmp(name, "worker-1") == 0 && access(getenv("FAILING"), F_OK) == 0
                && getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) == 0 && listens) {
                errno = ENOSPC;
                return -1;
            }
            return next(epoll, operation, descriptor, event);
        }

        """

    private func text(_ origin: ScriptedOrigin, _ listen: String, _ more: String = "") -> String {
        "listen: [\(listen)]\n\(more)upstreams: [{name: origin, servers: [\(origin.url)]}]\n"
    }

    /// A program whose second worker fails when there is a file `failing`.
    private func withFailingWorker(_ body: (ScriptedOrigin, Program) throws -> Void) throws {
        let origin = try ScriptedOrigin()
        defer { origin.stop() }
        origin.on("/x") { _ in [.answer(200, "Cache-Control: max-age=600", body: "x")] }
        let folder = try System.makeTemporaryFolder()
        try System.write(Self.failingWorker, to: "\(folder)/preloaded.c")
        let port = try Socket.freePort()
        try System.write(text(origin, "127.0.0.1:\(port)", "workers: 2\n"), to: "\(folder)/coalesced.yaml")
        let compile =
            "$(command -v cc || command -v clang) -shared -fPIC -o \(folder)/preloaded.so \(folder)/preloaded.c"
        let proxy = try Program(
            folder: folder,
            ["serve", "--config", "\(folder)/coalesced.yaml", "--admin", "unix:\(folder)/admin.sock"],
            shell:
                "\(compile) && export FAILING=\(folder)/failing LD_PRELOAD=\(folder)/preloaded.so && exec \"$@\"")
        defer { proxy.stop() }
        try proxy.waitUntilListening(1)
        try body(origin, proxy)
    }

    private static let noPreload = Comment("it runs before the sanitizer has begun")

    @Test(.disabled(if: Program.isThreadSanitized, noPreload))
    func `if a worker cannot accept, an upgrade fails, and costs no client its connection`() throws {
        try withFailingWorker { origin, proxy in
            let clients = Passersby(30, at: proxy, get: "/x", expecting: "x")
            try System.write("", to: "\(proxy.folder)/failing")
            let listen = "127.0.0.1:\(proxy.endpoint.port)"
            for (round, workers) in (0..<(10 * Self.rounds)).map({ ($0 + 1, $0 % 2 == 0 ? 2 : 5) }) {
                try System.write(text(origin, listen, "workers: \(workers)\n"), to: proxy.configurationPath)
                proxy.signal(SIGUSR2)
                try eventually("it fails; \(proxy.diagnostics.suffix(1000))", within: .seconds(30)) {
                    proxy.diagnostics.matches(of: /not upgraded: \/.* ended with exit code/).count == round
                }
            }
            #expect(proxy.diagnostics.contains("cannot listen on \(listen): No space left on device"))
            let failures = try clients.stop(after: UpgradeTests.requests)
            #expect(failures.isEmpty, "\(failures.count) of \(clients.served): \(failures.prefix(5))")
            #expect(proxy.successors.isEmpty && proxy.exit() == nil)
        }
    }

    @Test(.disabled(if: Program.isThreadSanitized, noPreload))
    func `if a worker cannot accept at an address that a reload adds, the reload changes nothing`() throws {
        try withFailingWorker { origin, proxy in
            let (old, new) = (proxy.endpoint.port, try Socket.freePort())
            let added = Address(endpoint: .tcp(new))
            let clients = Passersby(20, at: proxy, get: "/x", expecting: "x")
            try System.write("", to: "\(proxy.folder)/failing")
            for _ in 1...(5 * Self.rounds) {
                try System.write(
                    text(origin, "127.0.0.1:\(new)", "workers: 2\nhosts: [elsewhere.example]\n"),
                    to: proxy.configurationPath)
                let run = try proxy.command("reload")
                #expect(
                    run.exit == .code(78) && run.errors.contains("cannot listen on 127.0.0.1:\(new): No space"),
                    "\(run)")
                try eventually("nobody listens there") {
                    guard let client = try? added.connect() else { return true }
                    client.close()
                    return false
                }
                #expect(try proxy.status()["listeners"] == .array([.string("127.0.0.1:\(old)")]))
            }
            let failures = try clients.stop(after: UpgradeTests.requests / 2)
            #expect(failures.isEmpty, "\(failures.count) of \(clients.served): \(failures.prefix(5))")
            System.remove("\(proxy.folder)/failing")
            #expect(try proxy.command("reload").exit == .code(0))
            #expect(try added.get("/x", "Host: elsewhere.example").text == "x")
        }
    }

    /// A program with the addresses of its file alone.
    private func withAddresses(
        _ listen: String, admin: String, _ body: (ScriptedOrigin, Program) throws -> Void
    ) throws {
        let origin = try ScriptedOrigin()
        defer { origin.stop() }
        origin.on("/x") { _ in [.answer(200, body: "x")] }
        let folder = try System.makeTemporaryFolder()
        let path = "\(folder)/coalesced.yaml"
        try System.write(text(origin, listen, "workers: 2\nadmin: {address: \"\(admin)\"}\n"), to: path)
        let proxy = try Program(folder: folder, ["serve", "--config", path])
        defer { proxy.stop() }
        try proxy.waitUntilListening(2)
        try body(origin, proxy)
    }

    private func answer(_ port: UInt16, _ path: String) throws -> String {
        try Address(endpoint: .tcp(port)).get(path).text
    }

    @Test func `the admin listener may move from one address to all, at the same port`() throws {
        let (port, admin) = (try Socket.freePort(), try Socket.freePort())
        try withAddresses("127.0.0.1:\(port)", admin: "127.0.0.1:\(admin)") { origin, proxy in
            let clients = Passersby(10, at: Address(endpoint: .tcp(admin)), get: "/healthz", expecting: "ok\n")
            for address in ["0.0.0.0", "127.0.0.1", "0.0.0.0"] {
                try System.write(
                    text(
                        origin, "127.0.0.1:\(port)", "workers: 2\nadmin: {address: \"\(address):\(admin)\"}\n"),
                    to: proxy.configurationPath)
                let next = try proxy.upgrade()
                #expect(try answer(port, "/x") == "x" && answer(admin, "/readyz") == "ready\n")
                #expect(
                    proxy.diagnostics.matches(of: /listening on ([0-9.:]+) \(admin\)/).last?.1 == "\(address):\(admin)")
                #expect(proxy.successors.last == next)
            }
            let failures = try clients.stop()
            #expect(failures.isEmpty, "\(failures.count) of \(clients.served): \(failures.prefix(5))")
        }
    }

    @Test func `the admin listener and another may change places`() throws {
        let (one, other) = (try Socket.freePort(), try Socket.freePort())
        try withAddresses("127.0.0.1:\(one)", admin: "127.0.0.1:\(other)") { origin, proxy in
            for (listen, admin) in [(other, one), (one, other), (other, one)] {
                try System.write(
                    text(
                        origin, "127.0.0.1:\(listen)", "workers: 2\nadmin: {address: \"127.0.0.1:\(admin)\"}\n"),
                    to: proxy.configurationPath)
                try proxy.upgrade()
                // Each of several sockets has its turn.
                for _ in 1...8 {
                    #expect(try answer(listen, "/x") == "x" && answer(admin, "/readyz") == "ready\n")
                }
            }
        }
    }

    @Test func `a second program at the same admin address is refused`() throws {
        let (port, admin) = (try Socket.freePort(), try Socket.freePort())
        try withAddresses("127.0.0.1:\(port)", admin: "127.0.0.1:\(admin)") { origin, _ in
            let second = try Program(
                folder: System.makeTemporaryFolder(),
                ["serve", "--listen", "127.0.0.1:0", "--upstream", origin.url, "--admin", "127.0.0.1:\(admin)"])
            defer { second.stop() }
            #expect(try second.exited() != .code(0))
            #expect(second.diagnostics.contains("cannot listen on 127.0.0.1:\(admin): Address already in use"))
        }
    }

    @Test func `two listeners at any port stay two, after a reload and an upgrade`() throws {
        let origin = try ScriptedOrigin()
        defer { origin.stop() }
        origin.on("/x") { _ in [.answer(200, body: "x")] }
        let proxy = try Program.serve(
            servers: [origin.url], [.workers(2)],
            arguments: ["--listen", "127.0.0.1:0", "--listen", "127.0.0.1:0"], listeners: 2)
        defer { proxy.stop() }
        let ports = Array(proxy.ports.prefix(2))
        func check() throws {
            let listeners = try proxy.status()["listeners"]
            #expect(listeners == .array(ports.map { .string("127.0.0.1:\($0)") }))
            // Each worker has its turn.
            for port in ports { for _ in 1...8 { #expect(try answer(port, "/x") == "x") } }
        }
        try check()
        for round in 1...2 {
            #expect(try proxy.command("reload").exit == .code(0))
            try check()
            try proxy.upgrade()
            #expect(proxy.successors.count == round)
            try check()
        }
        #expect(try proxy.exited() == .code(0))
    }

    @Test func `an upgrade during a reload hands on the listeners that the reload adds`() throws {
        try withAddresses("127.0.0.1:0", admin: "127.0.0.1:0") { origin, proxy in
            var process = proxy.child
            for round in 1...(4 * Self.rounds) {
                let ports = try (0..<3).map { _ in try Socket.freePort() }
                try System.write(
                    text(
                        origin, (["127.0.0.1:0"] + ports.map { "127.0.0.1:\($0)" }).joined(separator: ", "),
                        "workers: 2\nadmin: {address: \"127.0.0.1:0\"}\n"),
                    to: proxy.configurationPath)
                Spawn.signal(process, SIGHUP)
                System.nap(.microseconds(round % 4 * 300))
                process = try proxy.upgrade()
                for port in ports { #expect(try answer(port, "/x") == "x") }
            }
        }
    }

    @Test(.clientsInTheClear("they send before they are accepted"))
    func `clients in the queue of a listener without descriptors are served when the program ends`() throws {
        try scenario(.workers(1)) { origin, proxy in
            origin.on("/x") { _ in [.answer(200, "Cache-Control: max-age=600", body: "x")] }
            #expect(try proxy.get("/x").text == "x")
            var waiting: [Conversation] = []
            try proxy.withoutDescriptors {
                waiting = try (0..<20).map { _ in try proxy.connect() }
                for client in waiting { try client.send(proxy.request("GET", "/x")) }
                try eventually("it accepts none; \(proxy.diagnostics)") {
                    proxy.diagnostics.contains("Too many open files")
                }
                proxy.terminate()
                try eventually("it ends") { proxy.diagnostics.contains("SIGTERM: no new connections") }
            }
            for client in waiting { #expect(try client.answer().text == "x") }
            #expect(try proxy.exited() == .code(0))
        }
    }
}
