import Bytes
import CertificateMaking
import Libevent
import LoopTesting
import TLS
import Testing

@testable import Redis

/// Commands find the node that has their key.
struct RedisClusterTests {
    /// A cluster and what happened to its nodes.
    private final class TestCluster {
        let loop: EventLoop
        private(set) var cluster: RedisCluster!
        private(set) var events: [String] = []
        private(set) var replies: [String] = []
        private(set) var pushes: [String] = []
        var onEvent: (TestCluster, String) -> Void = { _, _ in }
        var onPush: (TestCluster) -> Void = { _ in }

        init(
            _ seeds: [RedisAddress], on loop: EventLoop, tls: TLSPeers? = nil,
            _ change: (inout RedisSettings) -> Void = { _ in }
        ) {
            self.loop = loop
            var settings = RedisSettings()
            (settings.timeout, settings.setUpLimit) = (5 * second, 5 * second)
            change(&settings)
            cluster = RedisCluster(
                seeds, settings, tls: tls.map(TLSConnector.init), on: loop, resolver: Resolver(on: loop)
            ) { [unowned self] in
                pushes.append("\(RESPValue.push($0))")
                onPush(self)
            } onEvent: { [unowned self] address, event in
                events.append("\(address) \(event)")
                onEvent(self, "\(event)")
            }
        }

        func send(_ command: RedisCommand, _ then: @escaping (String) -> Void = { _ in }) {
            cluster.send(command) { [unowned self] reply in
                replies.append("\(reply)")
                then("\(reply)")
            }
        }

        func end() {
            cluster.stop()
            loop.stop()
        }
    }

    @Test func `a single server is asked once which slots it has, and gets all commands`() throws {
        let server = try RedisServer()
        var cluster: TestCluster?
        try onLoop { loop in
            cluster = TestCluster([server.address], on: loop)
            cluster?.onEvent = { cluster, _ in
                cluster.send(command("SET", "a", "1"))
                cluster.send(command("GET", "a"))
                cluster.send(command("GET", "b")) { _ in cluster.end() }
            }
            cluster?.cluster.start()
        }
        #expect(cluster?.replies == ["+OK", "\"1\"", "null"])
        #expect(cluster?.events == ["unix:\(server.path) ready"])
    }

    // MARK: Scripted nodes

    /// An answer to `CLUSTER SLOTS` by which each node has the slots from its number on.
    private static func slots(_ nodes: [(Int, UInt16)]) -> String {
        let ranges = nodes.enumerated().map { index, node in
            let last = index + 1 < nodes.count ? nodes[index + 1].0 - 1 : 16383
            return "*3\r\n:\(node.0)\r\n:\(last)\r\n*3\r\n$9\r\n127.0.0.1\r\n:\(node.1)\r\n$2\r\nid\r\n"
        }
        return "*\(ranges.count)\r\n" + ranges.joined()
    }

    /// Two nodes, and a cluster that knows only the first. `foo` has slot 12182, `bar` 5061.
    private func test(
        _ answer: @escaping (_ isFirst: Bool, Conversation, [String], _ ports: (UInt16, UInt16)) -> Void,
        _ body: @escaping (TestCluster) -> Void
    ) throws -> (cluster: TestCluster, nodes: [ScriptedEngine]) {
        var (cluster, nodes): (TestCluster?, [ScriptedEngine]) = (nil, [])
        try onLoop { loop in
            nodes = try [true, false].map { isFirst in
                try ScriptedEngine(on: loop) { conversation, command in
                    answer(isFirst, conversation, command, (nodes[0].port, nodes[1].port))
                }
            }
            cluster = TestCluster([nodes[0].address], on: loop) { $0.shortestPause = millisecond }
            if let cluster { body(cluster) }
            cluster?.cluster.start()
        }
        return (try #require(cluster), nodes)
    }

    /// The commands that each node got, without those that ask for the slots.
    private static func commands(of nodes: [ScriptedEngine]) -> [[String]] {
        nodes.map { node in
            node.conversations.flatMap { $0.commands.map { $0.joined(separator: " ") } }.filter {
                $0 != "CLUSTER SLOTS"
            }
        }
    }

    @Test func `each command goes to the node that has its key`() throws {
        let (cluster, nodes) = try test { isFirst, conversation, command, ports in
            guard command[0] != "CLUSTER" else {
                return conversation.say(Self.slots([(0, ports.0), (10000, ports.1)]))
            }
            conversation.say(isFirst ? "+first\r\n" : "+second\r\n")
        } _: { cluster in
            cluster.onEvent = { cluster, _ in
                guard cluster.events.count == 2 else { return }
                for key in ["foo", "bar", "x{foo}y"] {
                    cluster.send(command("GET", key)) { _ in if cluster.replies.count == 3 { cluster.end() } }
                }
            }
        }
        #expect(cluster.replies.sorted() == ["+first", "+second", "+second"])
        #expect(Self.commands(of: nodes) == [["GET bar"], ["GET foo", "GET x{foo}y"]])
    }

    @Test func `a command is sent on where its slot has gone, and the next ones go there at once`() throws {
        let (cluster, nodes) = try test { isFirst, conversation, command, ports in
            // No node tells of the slots, so that only the redirection does.
            if command[0] == "CLUSTER" { return conversation.say("-ERR unknown\r\n") }
            if command == ["GET", "bar"], !isFirst { return conversation.say("-MOVED 5061 :\(ports.0)\r\n") }
            conversation.say(isFirst && command[1] == "foo" ? "-MOVED 12182 :\(ports.1)\r\n" : "+here\r\n")
        } _: { cluster in
            cluster.onEvent = { cluster, _ in
                guard cluster.events.count == 1 else {
                    // The connection to the second node is ready, which the first command did not wait for.
                    cluster.send(command("GET", "foo")) { _ in
                        cluster.send(command("GET", "bar")) { _ in cluster.end() }
                    }
                    return
                }
                cluster.send(command("GET", "foo"))
            }
        }
        #expect(cluster.replies == ["unavailable: not-connected", "+here", "+here"])
        #expect(Self.commands(of: nodes) == [["GET foo", "GET bar"], ["GET foo"]])
    }

    @Test func `a redirection for one command leaves the others where they are`() throws {
        let (cluster, nodes) = try test { isFirst, conversation, command, ports in
            guard command[0] != "CLUSTER" else {
                return conversation.say(Self.slots([(0, ports.0), (16383, ports.1)]))
            }
            conversation.say(isFirst && command[1] == "foo" ? "-ASK 12182 127.0.0.1:\(ports.1)\r\n" : "+here\r\n")
        } _: { cluster in
            cluster.onEvent = { cluster, _ in
                guard cluster.events.count == 2 else { return }
                cluster.send(command("GET", "foo")) { _ in
                    cluster.send(command("GET", "foo")) { _ in cluster.end() }
                }
            }
        }
        #expect(cluster.replies == ["+here", "+here"])
        #expect(Self.commands(of: nodes) == [["GET foo", "GET foo"], ["ASKING", "GET foo", "ASKING", "GET foo"]])
    }

    @Test func `nodes that send a command to each other end its way`() throws {
        let (cluster, nodes) = try test { isFirst, conversation, command, ports in
            guard command[0] != "CLUSTER" else {
                return conversation.say(Self.slots([(0, ports.0), (16383, ports.1)]))
            }
            conversation.say("-MOVED 12182 127.0.0.1:\(isFirst ? ports.1 : ports.0)\r\n")
        } _: { cluster in
            cluster.onEvent = { cluster, _ in
                guard cluster.events.count == 2 else { return }
                cluster.send(command("GET", "foo")) { _ in cluster.end() }
            }
        }
        #expect(cluster.replies.count == 1 && cluster.replies[0].hasPrefix("moved 12182 to 127.0.0.1:"))
        #expect(Self.commands(of: nodes).joined().count == 4)
    }

    @Test func `the servers that were named are left once the cluster's nodes are ready, and used again when none is`()
        throws
    {
        var seen: [String] = []
        let (cluster, nodes) = try test { isFirst, conversation, command, ports in
            guard command[0] != "CLUSTER" else { return conversation.say(Self.slots([(0, ports.1)])) }
            if isFirst { return conversation.say("+first\r\n") }
            conversation.close()
        } _: { cluster in
            cluster.onEvent = { cluster, event in
                seen.append(event)
                switch seen {
                case ["ready", "ready", "not needed"]:
                    cluster.send(command("GET", "foo"))
                case _ where seen.count > 4 && event == "ready": cluster.end()
                default: break
                }
            }
        }
        #expect(seen.prefix(4).last == "lost: the engine closed the connection", "\(seen)")
        #expect(cluster.replies == ["lost: the engine closed the connection"])
        #expect(nodes[0].conversations.count == 2)
    }

    // MARK: A real cluster

    /// Two nodes, their ports, and those on which they talk with each other.
    private static func realNodes() throws -> (nodes: [RedisServer], ports: [UInt16]) {
        var attempts = 1
        while true {
            let ports = try freePorts(4)
            do {
                let nodes = try [0, 1].map { index in
                    try RedisServer(
                        "--port", "\(ports[index])", "--bind", "127.0.0.1", "--cluster-enabled", "yes",
                        "--cluster-port", "\(ports[index + 2])")
                }
                return (nodes, ports)
            } catch {
                // The kernel may give a free port to another test before the node binds it.
                guard attempts < 5 else { throw error }
                attempts += 1
            }
        }
    }

    @Test(arguments: [false, true])
    func `two real nodes are one engine, also while a slot is on its way`(isSecure: Bool) throws {
        var (nodes, ports, engines): ([RedisServer], [UInt16], [SecureEngine]) = ([], [], [])
        if isSecure {
            let authority = TestAuthority()
            engines = try (0..<2).map { _ in
                try SecureEngine(authority, others: 1) { ports in
                    ["--tls-cluster", "yes", "--cluster-enabled", "yes", "--cluster-port", "\(ports[1])"]
                }
            }
            (nodes, ports) = (engines.map(\.server), [0, 1].flatMap { place in engines.map { $0.ports[place] } })
        } else {
            (nodes, ports) = try Self.realNodes()
        }
        var (cluster, direct, ids): (TestCluster?, [TestClient], [String]) = (nil, [], ["", ""])
        var (moved, values): ([String], [String]) = ([], [])
        let keys = (0..<50).map { "key\($0)" }
        // The handlers hold the clients and the engines, whose processes would outlive the tests.
        defer {
            cluster?.onEvent = { _, _ in }
            direct = []
        }
        try onLoop { loop in
            direct = nodes.map { TestClient($0.address, on: loop) }
            var ready = 0
            for client in direct {
                client.start { _, event in
                    guard event == "ready" else { return }
                    ready += 1
                    if ready == 2 { join() }
                }
            }
            func join() {
                let slots = [("0", "7999"), ("8000", "16383")]
                for (index, client) in direct.enumerated() {
                    client.send(command("CLUSTER", "MYID")) { ids[index] = $0.filter { $0 != "\"" } }
                    client.send(command("CLUSTER", "ADDSLOTSRANGE", slots[index].0, slots[index].1))
                }
                direct[1].send(command("CLUSTER", "MEET", "127.0.0.1", "\(ports[0])", "\(ports[2])")) { _ in
                    waitUntilJoined()
                }
            }
            // Until both nodes know of all slots.
            func waitUntilJoined() {
                func isWhole(_ info: String) -> Bool {
                    info.contains("cluster_state:ok") && info.contains("cluster_slots_ok:16384")
                }
                direct[0].send(command("CLUSTER", "INFO")) { first in
                    direct[1].send(command("CLUSTER", "INFO")) { second in
                        if isWhole(first), isWhole(second) { return useCluster() }
                        loop.schedule(after: 20 * millisecond, waitUntilJoined)
                    }
                }
            }
            func useCluster() {
                var hasBegun = false
                cluster = TestCluster(
                    [RedisAddress(.tcp(host: "localhost", port: ports[0]), isSecure: isSecure)], on: loop,
                    tls: engines.first?.peers())
                cluster?.onEvent = { cluster, _ in
                    guard !hasBegun, cluster.cluster.conditions.filter({ $0.condition == .ready }).count == 2,
                        cluster.events.contains(where: { $0.contains("not needed") })
                    else { return }
                    hasBegun = true
                    for key in keys {
                        cluster.send(command("SET", key, key))
                        cluster.send(command("GET", key)) {
                            values.append($0)
                            if values.count == keys.count { moveSlot(cluster) }
                        }
                    }
                }
                cluster?.cluster.start()
            }
            // The slot of `foo`, 12182, is on its way from the second node to the first.
            func moveSlot(_ cluster: TestCluster) {
                direct[0].send(command("CLUSTER", "SETSLOT", "12182", "IMPORTING", ids[1])) { _ in
                    direct[1].send(command("CLUSTER", "SETSLOT", "12182", "MIGRATING", ids[0])) { _ in
                        cluster.send(command("SET", "foo", "new")) { moved.append($0) }
                        cluster.send(command("GET", "foo")) {
                            moved.append($0)
                            cluster.end()
                            for client in direct { client.end() }
                        }
                    }
                }
            }
        }
        #expect(values.sorted() == keys.map { "\"\($0)\"" }.sorted())
        #expect(moved == ["+OK", "\"new\""])
        #expect(direct.allSatisfy { !$0.replies.contains { $0.hasPrefix("error") } }, "\(direct.map(\.replies))")
    }
}
