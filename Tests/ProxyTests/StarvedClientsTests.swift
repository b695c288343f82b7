import Bytes
import Libevent
import LoopTesting
import Testing

@testable import Proxy

/// Who has sent all there is of a body gets a turn when there is more: nobody is forgotten, and nobody else is served.
@Suite(.timeLimit(.minutes(10))) struct StarvedClientsTests {
    private final class Client: TurnTaker {
        private(set) var turns = 0
        func turnCame() { turns += 1 }
    }

    private struct Place {
        let loop: EventLoop
        let starved: StarvedClients

        init() throws {
            loop = try EventLoop()
            starved = StarvedClients(loop: loop, index: 0, turns: Turns(loop: loop))
        }

        /// Until all that was posted so far, and what that posts, is done.
        func run() {
            let handle = loop.handle
            handle.post { handle.post { handle.stop() } }
            loop.run()
        }
    }

    private let budget = MemoryBudget(limit: 1 << 20)

    private func grow(_ body: GrowingBody, by text: String = "x") {
        let bytes = ByteSlice(text)
        let result = body.append(bytes.span)
        #expect(result != .noMemory)
    }

    @Test func `bytes that arrive between a client's look and its wait are noticed`() throws {
        let place = try Place()
        let body = GrowingBody(budget: budget)
        let client = Client()
        // It has looked; now there is more, and nobody follows the body yet.
        grow(body)
        place.starved.wait(client, for: body)
        #expect(client.turns == 0, "never from inside")
        place.run()
        #expect(client.turns == 1)
        body.fail()
        place.run()
        place.loop.finish()
    }

    @Test func `bytes that arrive while another client already waits are noticed`() throws {
        let place = try Place()
        let body = GrowingBody(budget: budget)
        let (first, second) = (Client(), Client())
        place.starved.wait(first, for: body)
        place.run()
        place.starved.wait(first, for: body)
        // The second has looked; the notice is on its way when it begins to wait.
        grow(body)
        place.starved.wait(second, for: body)
        place.run()
        #expect(first.turns == 2 && second.turns == 1)
        body.fail()
        place.run()
        place.loop.finish()
    }

    @Test func `each client is served once for each wait, and not without one`() throws {
        let place = try Place()
        let body = GrowingBody(budget: budget)
        let clients = [Client(), Client()]
        for client in clients { place.starved.wait(client, for: body) }
        place.run()
        #expect(clients.map(\.turns) == [1, 1])
        for _ in 0..<3 { grow(body) }
        place.run()
        #expect(clients.map(\.turns) == [1, 1], "they do not wait")
        place.starved.wait(clients[1], for: body)
        place.run()
        #expect(clients.map(\.turns) == [1, 1], "nothing came since")
        for _ in 0..<3 { grow(body) }
        place.run()
        #expect(clients.map(\.turns) == [1, 2])
        body.fail()
        place.run()
        place.loop.finish()
    }

    @Test(arguments: [true, false]) func `the end of a body serves each client, also a later one`(isWhole: Bool) throws
    {
        let place = try Place()
        let body = GrowingBody(budget: budget)
        let (first, late) = (Client(), Client())
        place.starved.wait(first, for: body)
        place.run()
        place.starved.wait(first, for: body)
        if isWhole { body.complete() } else { body.fail() }
        place.run()
        #expect(first.turns == 2)
        place.starved.wait(late, for: body)
        place.run()
        #expect(late.turns == 1)
        place.loop.finish()
    }

    @Test func `only clients whose body has grown are served`() throws {
        let place = try Place()
        let bodies = (0..<2).map { _ in GrowingBody(budget: budget) }
        let clients = (0..<4).map { _ in Client() }
        func allWait() {
            for (index, client) in clients.enumerated() { place.starved.wait(client, for: bodies[index % 2]) }
        }
        allWait()
        place.run()
        #expect(clients.map(\.turns) == [1, 1, 1, 1])
        allWait()
        grow(bodies[0])
        place.run()
        #expect(clients.map(\.turns) == [2, 1, 2, 1])
        grow(bodies[1])
        place.run()
        #expect(clients.map(\.turns) == [2, 2, 2, 2])
        for body in bodies { body.fail() }
        place.run()
        place.loop.finish()
    }

    /// Reads all there is whenever its turn comes.
    private final class Reader: TurnTaker {
        private let starved: StarvedClients
        private let body: GrowingBody
        private let atEnd: (_ length: Int) -> Void
        private var cursor: GrowingBody.Cursor

        init(_ body: GrowingBody, _ starved: StarvedClients, atEnd: @escaping (_ length: Int) -> Void) throws {
            self.body = body
            self.starved = starved
            self.atEnd = atEnd
            cursor = try #require(body.attach())
        }

        func turnCame() {
            while true {
                var slices: [ByteSlice] = []
                let (phase, reachesEnd) = body.read(at: cursor, into: &slices, limit: 16)
                body.advance(&cursor, by: slices.reduce(0) { $0 + $1.count })
                if !reachesEnd { continue }
                return phase == .open ? starved.wait(self, for: body) : atEnd(cursor.offset)
            }
        }
    }

    @Test(arguments: 0..<5) func `no client is forgotten while another thread writes`(_ round: Int) throws {
        let count = 5_000
        let body = GrowingBody(budget: budget)
        var lengths: [Int] = []
        var writer: LoopThread?
        try onLoop { loop in
            let starved = StarvedClients(loop: loop, index: 0, turns: Turns(loop: loop))
            let readers = try (0..<20).map { _ in
                try Reader(body, starved) { [unowned loop] in
                    lengths.append($0)
                    if lengths.count == 20 { loop.stop() }
                }
            }
            writer = try LoopThread(name: "writer") { _ in
                let bytes = ByteSlice("x")
                for _ in 0..<count { _ = body.append(bytes.span) }
                body.complete()
            }
            for reader in readers { reader.turnCame() }
        }
        writer?.join()
        #expect(lengths == Array(repeating: count, count: 20))
    }
}
