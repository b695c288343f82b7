import Glibc
import Testing

/// Sockets that listen already when the program starts, as systemd hands them over: the tests stand in for it.
@Suite(.scenario) struct SocketActivationTests {
    /// - Parameters:
    ///   - process: for whom the sockets are said to be; by default the program itself.
    ///   - promised: how many sockets there are said to be, if not as many as there are.
    private func start(
        _ sockets: [Int32], _ arguments: [String], for process: String = "$$", promised: Int? = nil,
        in folder: String? = nil
    ) throws -> Program {
        try Program(
            folder: folder ?? System.makeTemporaryFolder(), arguments,
            shell:
                "export LISTEN_PID=\(process) LISTEN_FDS=\(promised ?? sockets.count) LISTEN_FDNAMES=web:other; exec \"$@\"",
            passing: sockets)
    }

    private func withOrigin(_ body: (ScriptedOrigin) throws -> Void) throws {
        let origin = try ScriptedOrigin()
        defer { origin.stop() }
        origin.on("/x") { _ in [.answer(200, body: "x")] }
        try body(origin)
    }

    private func ask(_ place: Address) throws -> Conversation {
        let client = try place.connect()
        try client.send(place.request("GET", "/x"))
        return client
    }

    @Test(arguments: [1, 3])
    func `a client that connects between two processes is served by the next one`(_ workers: Int) throws {
        try withOrigin { origin in
            let gate = Gate()
            origin.on("/slow") { _ in [.head(200, "Content-Length: 4"), .text("ab"), .gate(gate), .text("cd")] }
            let socket = try Socket.listen()
            defer { Socket.close(socket.descriptor) }
            let arguments = [
                "--listen", "127.0.0.1:\(socket.port)", "--upstream", origin.url, "--workers", "\(workers)",
            ]
            let place = Address(endpoint: .tcp(socket.port))

            let early = try ask(place)
            let first = try start([socket.descriptor], arguments)
            defer { first.stop() }
            let atFirst = try early.answer().text
            #expect(atFirst == "x")
            try first.waitUntilListening(1)
            #expect(first.ports == [socket.port])
            let answers = try (0..<20).map { _ in try ask(place).answer().text }
            #expect(answers.allSatisfy { $0 == "x" })

            let slow = first.crowd(1, get: "/slow")
            try eventually("half is there") { slow.answers[0].body.length == 2 }
            first.terminate()
            let kept = System.target(ofLink: "/proc/self/fd/\(socket.descriptor)")
            try eventually("no worker accepts any more") { !first.files.contains(kept) }
            let late = try (0..<20).map { _ in try ask(place) }
            gate.open()
            #expect(slow.finished()[0].text == "abcd")
            #expect(try first.exited() == .code(0))

            let second = try start([socket.descriptor], arguments)
            defer { second.stop() }
            let atLast = try late.map { try $0.answer().text }
            #expect(atLast.allSatisfy { $0 == "x" })
            second.terminate()
            #expect(try second.exited() == .code(0))
        }
    }

    @Test func `an inherited admin socket is used, and the other addresses are bound as usual`() throws {
        try withOrigin { origin in
            let sockets = try [Socket.listen(), Socket.listen()]
            defer { for socket in sockets { Socket.close(socket.descriptor) } }
            let listeners = ["127.0.0.1:0", "127.0.0.1:\(sockets[1].port)"].flatMap { ["--listen", $0] }
            let program = try start(
                sockets.map(\.descriptor),
                listeners + ["--admin", "127.0.0.1:\(sockets[0].port)", "--upstream", origin.url])
            defer { program.stop() }
            try program.waitUntilListening(3)
            #expect(Set(program.ports).isSuperset(of: sockets.map(\.port)) && program.ports.count == 3)
            let ready = try Address(endpoint: .tcp(sockets[0].port)).get("/readyz")
            #expect(ready.status == 200)
            for port in Set(program.ports).subtracting([sockets[0].port]) {
                let answer = try Address(endpoint: .tcp(port)).get("/x")
                #expect(answer.text == "x")
            }
        }
    }

    @Test func `the path of an inherited Unix socket is kept`() throws {
        try withOrigin { origin in
            let folder = try System.makeTemporaryFolder()
            let socket = try Socket.listen(at: "\(folder)/s")
            defer { Socket.close(socket) }
            let program = try start([socket], ["--listen", "unix:\(folder)/s", "--upstream", origin.url], in: folder)
            defer { program.stop() }
            let answer = try ask(Address(endpoint: .unix("\(folder)/s"))).answer()
            #expect(answer.text == "x")
            program.terminate()
            #expect(try program.exited() == .code(0))
            #expect(System.exists("\(folder)/s"))
        }
    }

    @Test func `an inherited socket that cannot be used exits with 78 and the reason`() throws {
        let listening = try Socket.listen(), bound = try Socket.bind()
        defer { for socket in [listening, bound] { Socket.close(socket.descriptor) } }
        let cases: [(sockets: [Int32], listen: UInt16, reason: String)] = [
            ([listening.descriptor], 0, "listening on 127.0.0.1:\(listening.port), which is neither"),
            (
                [listening.descriptor, listening.descriptor], listening.port,
                "two sockets listening on 127.0.0.1:\(listening.port)"
            ),
            (
                [bound.descriptor], bound.port,
                "descriptor 3, passed by the service manager, is not a listening stream socket"
            ),
        ]
        for (sockets, port, reason) in cases {
            let program = try start(sockets, ["--listen", "127.0.0.1:\(port)", "--upstream", "http://127.0.0.1:9"])
            defer { program.stop() }
            #expect(try program.exited() == .code(78))
            #expect(program.diagnostics.contains(reason), "\(program.diagnostics)")
        }
    }

    @Test(arguments: [0, 1]) func `a missing inherited descriptor is reported`(count: Int) throws {
        let listening = try Socket.listen()
        defer { Socket.close(listening.descriptor) }
        let program = try start(
            Array(repeating: listening.descriptor, count: count),
            ["--listen", "127.0.0.1:\(listening.port)", "--upstream", "http://127.0.0.1:9"],
            promised: count + 1)
        defer { program.stop() }
        #expect(try program.exited() == .code(78))
        #expect(
            program.diagnostics.contains("descriptor \(3 + count), announced by LISTEN_FDS, is not open"),
            "\(program.diagnostics)")
    }

    @Test func `sockets inherited by another process are left alone`() throws {
        let socket = try Socket.listen()
        defer { Socket.close(socket.descriptor) }
        let program = try start(
            [socket.descriptor], ["--listen", "127.0.0.1:\(socket.port)", "--upstream", "http://127.0.0.1:9"], for: "1")
        defer { program.stop() }
        // Somebody listens there: the tests.
        #expect(try program.exited() == .code(69))
    }
}
