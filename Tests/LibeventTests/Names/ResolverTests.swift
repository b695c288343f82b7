import Bytes
import Glibc
import Libevent
import LoopTesting
import NameServing
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(10))) struct ResolverTests {
    /// Resolves one name and gives the answer.
    private func found(
        _ host: String, family: Resolver.Family = .any, _ settings: Resolver.Settings = Resolver.Settings()
    ) throws -> Resolver.Answer? {
        var result: Resolver.Answer?
        try onLoop { loop in
            let resolver = Resolver(on: loop, settings: settings)
            resolver.resolve(host, port: 80, family: family) { answer in
                #expect(result == nil)
                result = answer
                loop.stop()
            }
            #expect(result == nil)
        }
        return result
    }

    /// The same without its time.
    private func answer(
        _ host: String, family: Resolver.Family = .any, _ settings: Resolver.Settings = Resolver.Settings()
    ) throws -> Addresses? { try found(host, family: family, settings)?.map(\.addresses) }

    private typealias Addresses = Result<[SocketAddress], ResolveError>

    private static func address(_ last: UInt8) -> SocketAddress { .ipv4(IPv4Address(192, 0, 2, last), port: 80) }
    private static func address6(_ last: UInt64) -> SocketAddress {
        .ipv6(IPv6Address(high: 0x2001_0db8 << 32, low: last), port: 80)
    }

    /// `origin.test` is 192.0.2.`last`, `empty.test` has no address, `silent.test` gets no answer, `refused.test` is
    /// refused, `failed.test` fails, `four.test` has no answer for IPv6; the rest does not exist.
    private static func server(answering last: UInt8 = 1) throws -> NameServer {
        try NameServer { question in
            switch question.name {
            case "origin.test": .addresses([address(last)])
            case "empty.test": .addresses([])
            case "silent.test": .silence
            case "refused.test": .code(5)
            case "failed.test": .code(2)
            case "four.test": question.isIPv6 ? .silence : .addresses([address(last)])
            default: .code(3)
            }
        }
    }

    /// What asks that server, and its options.
    private func settings(_ servers: NameServer..., lines: String = "") -> Resolver.Settings {
        var settings = Resolver.Settings()
        settings.hosts = "/nowhere/hosts"
        settings.resolvConf = file(
            "resolv-\(servers[0].port)",
            servers.map { "nameserver 127.0.0.1:\($0.port)\n" }.joined() + "search .\n" + lines)
        return settings
    }

    private func file(_ name: String, _ text: String) -> String {
        let path = temporaryPath(name)
        put(text, inFileAt: path)
        return path
    }

    private func put(_ text: String, inFileAt path: String) {
        let number = unsafe open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        let bytes = Array(text.utf8)
        let written = unsafe write(number, bytes, bytes.count)
        #expect(written == bytes.count)
        close(number)
    }

    @Test(
        arguments: [
            ("127.0.0.1", .any, .success([.ipv4(.loopback, port: 80)])),
            ("::1", .any, .success([.ipv6(.loopback, port: 80)])),
            ("::1", .ipv4, .failure(.notFound)),
            ("localhost", .any, .success([.ipv4(.loopback, port: 80), .ipv6(.loopback, port: 80)])),
            ("LocalHost", .ipv4, .success([.ipv4(.loopback, port: 80)])),
            ("a.localhost", .ipv6, .success([.ipv6(.loopback, port: 80)])),
            ("", .any, .failure(.badName)),
        ] as [(String, Resolver.Family, Result<[SocketAddress], ResolveError>)])
    func `addresses and localhost need no name server`(
        host: String, family: Resolver.Family, expected: Result<[SocketAddress], ResolveError>
    ) throws {
        #expect(try answer(host, family: family) == expected)
    }

    @Test func `a name with a zero byte is refused`() throws {
        #expect(try answer("a\0b") == .failure(.badName))
    }

    @Test func `the hosts file is used`() throws {
        var settings = Resolver.Settings()
        let text =
            "# of origin.test\r\n192.0.2.7\tother.test  Origin.TEST # 192.0.2.9 x\r\n\n"
            + "192.0.2.8 origin.tes origin.tests # origin.test\nbad origin.test\n2001:db8::7 origin.test"
        settings.hosts = file("hosts", text)
        settings.resolvConf = "/nowhere/resolv.conf"
        #expect(
            try answer("origin.test", family: .ipv4, settings) == .success([.ipv4(IPv4Address(192, 0, 2, 7), port: 80)])
        )
        #expect(
            try answer("origin.test", family: .ipv6, settings)
                == .success([.ipv6(IPv6Address(high: 0x2001_0db8 << 32, low: 7), port: 80)]))
    }

    @Test func `the hosts file is read again on request, and earlier questions are answered`() throws {
        var settings = Resolver.Settings()
        settings.hosts = file("hosts-again", "192.0.2.7 origin.test\n")
        settings.resolvConf = "/nowhere/resolv.conf"
        var answers: [Addresses] = []
        try onLoop { loop in
            let resolver = Resolver(on: loop, settings: settings)
            resolver.resolve("origin.test", port: 80, family: .ipv4) { answers.append($0.map(\.addresses)) }
            put("192.0.2.8 origin.test\n", inFileAt: settings.hosts)
            resolver.readFilesAgain()
            resolver.resolve("origin.test", port: 80, family: .ipv4) {
                answers.append($0.map(\.addresses))
                loop.stop()
            }
        }
        #expect(answers == [7, 8].map { .success([.ipv4(IPv4Address(192, 0, 2, $0), port: 80)]) })
    }

    @Test func `resolver settings are read again on request, and earlier questions keep their server`() throws {
        let (old, new) = (try Self.server(), try Self.server(answering: 2))
        var settings = Resolver.Settings()
        settings.hosts = "/nowhere/hosts"
        settings.resolvConf = file("resolv-again", "nameserver 127.0.0.1:\(old.port)\nsearch .\n")
        var answers: [Addresses] = []
        try onLoop { loop in
            let resolver = Resolver(on: loop, settings: settings)
            resolver.resolve("origin.test", port: 80, family: .ipv4) { before in
                answers.append(before.map(\.addresses))
                resolver.resolve("origin.test", port: 80, family: .ipv4) { after in
                    answers.append(after.map(\.addresses))
                    loop.stop()
                }
            }
            put("nameserver 127.0.0.1:\(new.port)\nsearch .\n", inFileAt: settings.resolvConf)
            resolver.readFilesAgain()
        }
        #expect(answers == [1, 2].map { .success([.ipv4(IPv4Address(192, 0, 2, $0), port: 80)]) })
        old.stop()
        new.stop()
    }

    @Test func `a question without configuration and server still ends`() throws {
        var settings = Resolver.Settings()
        settings.resolvConf = "/nowhere/resolv.conf"
        settings.hosts = "/nowhere/hosts"
        settings.timeout = 300 * millisecond
        guard case .failure = try answer("origin.test", settings) else {
            Issue.record("nobody can have answered")
            return
        }
    }

    @Test func `a name server's addresses come with the port, and an unknown name is not found`() throws {
        let server = try Self.server()
        let settings = self.settings(server)
        #expect(try answer("origin.test", settings) == .success([Self.address(1)]))
        #expect(try answer("missing.test", settings) == .failure(.notFound))
        server.stop()
    }

    @Test func `a name without an address of the requested family is not found`() throws {
        let server = try Self.server()
        let settings = self.settings(server)
        #expect(try answer("origin.test", family: .ipv6, settings) == .failure(.notFound))
        #expect(try answer("empty.test", settings) == .failure(.notFound))
        server.stop()
    }

    @Test(arguments: ["refused.test", "failed.test"])
    func `a name server that refuses or fails is distinguished from an unknown name`(name: String) throws {
        let server = try Self.server()
        #expect(try answer(name, settings(server)) == .failure(.serverFailed))
        server.stop()
    }

    @Test func `a missing name server is distinguished from an unknown name`() throws {
        let server = try Self.server()
        let settings = self.settings(server)
        server.stop()
        #expect(try answer("origin.test", settings) == .failure(.serverFailed))
    }

    @Test func `a name server that never answers for IPv6 delays an answer only briefly`() throws {
        let server = try Self.server()
        var settings = self.settings(server)
        settings.timeout = 2000 * millisecond
        #expect(try answer("four.test", settings) == .success([Self.address(1)]))
        server.stop()
    }

    @Test func `the addresses of one family are used if the other's are missing at the timeout`() throws {
        let server = try Self.server()
        var settings = self.settings(server)
        settings.timeout = 150 * millisecond
        #expect(try answer("four.test", settings) == .success([Self.address(1)]))
        server.stop()
    }

    @Test func `a silent name server is given up after the timeout`() throws {
        let server = try Self.server()
        var settings = self.settings(server)
        settings.timeout = 50 * millisecond
        #expect(try answer("silent.test", settings) == .failure(.timedOut))
        server.stop()
    }

    @Test func `a truncated answer is requested again over TCP`() throws {
        let addresses = (1...41).map { Self.address($0) }
        let server = try NameServer(largestDatagram: 512) { _ in .addresses(addresses) }
        #expect(try answer("large.test", settings(server)) == .success(addresses))
        let forIPv4 = server.questions.filter { !$0.isIPv6 }.map(\.isTCP)
        #expect(forIPv4 == [false, true])
        server.stop()
    }

    @Test func `an answer that EDNS has room for is not requested over TCP`() throws {
        let addresses = (1...41).map { Self.address($0) }
        let server = try NameServer { _ in .addresses(addresses) }
        #expect(try answer("large.test", settings(server)) == .success(addresses))
        #expect(server.questions.allSatisfy { !$0.isTCP && $0.room == 1232 })
        server.stop()
    }

    @Test func `the number of addresses that are used is limited`() throws {
        let many = (0..<1000).map { SocketAddress.ipv4(IPv4Address(10, 0, UInt8($0 >> 8), UInt8($0 & 255)), port: 80) }
        let server = try NameServer { _ in .addresses(many) }
        #expect(try answer("huge.test", settings(server)) == .success(Array(many.prefix(256))))
        server.stop()
    }

    @Test(
        arguments: [
            (60, nil, 60), (60, 5, 5), (5, 60, 5), (0, nil, 0), (UInt32.max, nil, 0),
        ] as [(UInt32, UInt32?, Int64)])
    func `an answer has its time to live, or the shorter one of its alias`(
        seconds: UInt32, ofAlias: UInt32?, expected: Int64
    ) throws {
        let server = try NameServer { _ in
            .addresses([Self.address(1)], seconds: seconds, alias: ofAlias.map { ("real.test", $0) })
        }
        let found = try self.found("origin.test", settings(server))
        #expect(found == .success(Resolver.Found([Self.address(1)], timeToLive: expected * second)))
        server.stop()
    }

    @Test func `addresses of both families alternate, and the shorter time to live counts`() throws {
        let server = try NameServer { question in
            .addresses(
                [Self.address(1), Self.address6(1), Self.address(2), Self.address6(2), Self.address(3)],
                seconds: question.isIPv6 ? 7 : 60)
        }
        let found = try self.found("both.test", settings(server))
        let expected = [Self.address(1), Self.address6(1), Self.address(2), Self.address6(2), Self.address(3)]
        #expect(found == .success(Resolver.Found(expected, timeToLive: 7 * second)))
        server.stop()
    }

    @Test func `search domains are appended, and both families belong to one name`() throws {
        let server = try NameServer { question in
            switch (question.name, question.isIPv6) {
            case ("app.b.test", false): .addresses([Self.address(1)])
            case ("app.c.test", true): .addresses([Self.address6(1)])
            default: .code(3)
            }
        }
        #expect(
            try answer("app", settings(server, lines: "search a.test b.test c.test\n")) == .success([Self.address(1)]))
        let names = Set(server.questions.map(\.name))
        #expect(names == ["app.a.test", "app.b.test"])
        server.stop()
    }

    @Test func `a name with enough dots, or with one at its end, is resolved unchanged`() throws {
        let server = try Self.server()
        let settings = self.settings(server, lines: "search a.test\n")
        #expect(try answer("origin.test", settings) == .success([Self.address(1)]))
        #expect(try answer("missing.", settings) == .failure(.notFound))
        let names = Set(server.questions.map(\.name))
        #expect(names == ["origin.test", "missing"])
        server.stop()
    }

    @Test func `after a silent first name server the next one is asked, and comes first from then on`() throws {
        let (silent, other) = (try NameServer { _ in .silence }, try Self.server())
        var settings = self.settings(silent, other)
        settings.timeout = 600 * millisecond
        var answers: [Addresses] = []
        try onLoop { loop in
            let resolver = Resolver(on: loop, settings: settings)
            resolver.resolve("origin.test", port: 80) { first in
                answers.append(first.map(\.addresses))
                let asked = silent.questions.count
                resolver.resolve("origin.test", port: 80) { second in
                    answers.append(second.map(\.addresses))
                    #expect(silent.questions.count == asked)
                    loop.stop()
                }
            }
        }
        #expect(answers == [.success([Self.address(1)]), .success([Self.address(1)])])
        silent.stop()
        other.stop()
    }

    @Test func `a cancelled question is never answered, and its completion is released`() throws {
        final class Canary {}
        weak var canary: Canary?
        let server = try Self.server()
        let settings = self.settings(server)
        try onLoop { loop in
            let resolver = Resolver(on: loop, settings: settings)
            let held = Canary()
            canary = held
            var lookups: [NameLookup] = []
            for host in ["silent.test", "origin.test", "127.0.0.1"] {
                lookups.append(resolver.resolve(host, port: 80) { _ in Issue.record("\(held) was answered") })
            }
            for lookup in lookups { lookup.cancel(); lookup.cancel() }
            loop.schedule(after: 20 * millisecond) { loop.stop() }
        }
        #expect(canary == nil)
        server.stop()
    }

    @Test func `a loop that ends during a question leaves nothing behind`() throws {
        weak var gone: EventLoop?
        let server = try Self.server()
        let settings = self.settings(server)
        try onLoop { loop in
            gone = loop
            let resolver = Resolver(on: loop, settings: settings)
            let lookup = resolver.resolve("silent.test", port: 80) { _ in Issue.record("answered") }
            loop.schedule(after: 5 * millisecond) {
                lookup.cancel()
                loop.stop()
            }
        }
        #expect(gone == nil)
        server.stop()
    }
}
