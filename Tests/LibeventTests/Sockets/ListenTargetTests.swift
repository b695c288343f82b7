import Glibc
import Testing

@testable import Libevent

@Suite(.timeLimit(.minutes(10))) struct ListenTargetTests {
    private func open(
        _ addresses: [SocketAddress], forLoops count: Int, keeping former: [ListenTarget] = []
    ) throws(ListenError) -> [ListenTarget] {
        try ListenTarget.open(addresses, Listener.Settings(), forLoops: count, keeping: former)
    }

    @Test func `each loop has a socket of its own at a port, and all have the one of a path`() throws {
        let path = SocketAddress.unix(path: temporaryPath("target"))
        let targets = try open([anyPort, path], forLoops: 3)
        #expect(targets.map(\.configured) == [anyPort, path])
        #expect(targets[0].sockets.count == 3 && targets[0].address.port != 0)
        #expect(Set(targets[0].sockets.map(\.address)) == [targets[0].address])
        let all = targets[0].sockets.map { ObjectIdentifier($0) }
        for loop in 0..<3 {
            let own = targets[0].sockets(ofLoop: loop, among: 3).map { ObjectIdentifier($0) }
            #expect(own == [all[loop]])
            #expect(targets[1].sockets(ofLoop: loop, among: 3).map(\.address) == [path])
        }
        // As after an upgrade to fewer loops: no socket is left alone.
        let two = (0..<2).flatMap { targets[0].sockets(ofLoop: $0, among: 2).map { ObjectIdentifier($0) } }
        #expect(two.count == 3 && Set(two) == Set(all))
    }

    @Test func `if one address cannot be bound, none is`() throws {
        let taken = try ListeningSocket(anyPort)
        let path = temporaryPath("none")
        let error = #expect(throws: ListenError.self) { try open([.unix(path: path), taken.address], forLoops: 2) }
        #expect(error?.reason == .addressInUse && error?.address == taken.address)
        #expect(unsafe access(path, F_OK) != 0)
    }

    @Test func `a port that this program has may be opened for all addresses`() throws {
        let first = try open([anyPort], forLoops: 2)
        let all = SocketAddress.ipv4(.any, port: first[0].address.port ?? 0)
        #expect(throws: ListenError.self) { try open([all], forLoops: 2) }
        let second = try open([all], forLoops: 2, keeping: first)
        #expect(second.first?.address == all)
    }

    @Test func `where this program has a port already, new sockets listen last`() throws {
        let first = try open([anyPort, anyPort], forLoops: 2)
        #expect(first.flatMap(\.sockets).map(\.isListening) == [true, true, true, true])
        let all = SocketAddress.ipv4(.any, port: first[0].address.port ?? 0)
        let second = try open([anyPort, all, first[0].address], forLoops: 2, keeping: first)
        // The port is that of the first one, so the other one keeps its own.
        #expect(second[2].isSame(as: first[0]) && second[0].isSame(as: first[1]))
        #expect(second[1].sockets.map(\.isListening) == [false, false])
        try ListenTarget.listen(second)
        #expect(second[1].sockets.map(\.isListening) == [true, true])
    }

    @Test func `a path is removed by the program that it belongs to`() throws {
        for (steps, remains) in [("leave", true), ("leave take", false), ("", false)] {
            let path = temporaryPath("owner")
            var socket: ListeningSocket? = try ListeningSocket(.unix(path: path))
            for step in steps.split(separator: " ") {
                if step == "leave" { socket?.leavePath() } else { socket?.takePath() }
            }
            #expect(socket != nil)
            socket = nil
            let isThere = unsafe access(path, F_OK) == 0
            #expect(isThere == remains, "\(steps)")
            unsafe unlink(path)
        }
    }

    @Test func `what is handed on is announced by a text that another version reads`() {
        let handedOn = HandedOn(giver: 4711, uses: [nil, .clients, .clients, .admin])
        #expect(handedOn.text == "4711:mcca")
        #expect(HandedOn(handedOn.text) == handedOn)
        #expect(HandedOn("1:") == HandedOn(giver: 1, uses: []))
        for text in ["", "1", "x:c", "1:z", "1:c:c"] { #expect(HandedOn(text) == nil, "\(text)") }
    }
}
