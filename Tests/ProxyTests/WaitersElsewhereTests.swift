import Bytes
import Coalescing
import Libevent
import Testing

@testable import Proxy

/// The waiters of a fetch on other loops, which are told its 1xx responses there. Both loops are this thread's, which
/// lets them run in turns.
@Suite struct WaitersElsewhereTests {
    private final class Ear: FetchWaiter {
        private(set) var heard = ""
        override func received(interim: ByteSlice) { heard += String(interim) }

        func hear(_ waiters: borrowing WaitersElsewhere, on loop: EventLoop) {
            for interim in waiters.add(LoopBound(self, on: loop)) { received(interim: interim) }
        }
    }

    /// So that another thread sees them.
    private final class Shared: Sendable {
        let waiters = WaitersElsewhere()
    }

    /// Until all that was posted so far is done.
    private func run(_ loops: EventLoop...) {
        for loop in loops {
            let handle = loop.handle
            handle.post { handle.stop() }
            loop.run()
        }
    }

    private func onTwoLoops(_ body: (_ one: EventLoop, _ other: EventLoop) -> Void) throws {
        let (one, other) = try (EventLoop(), EventLoop())
        body(one, other)
        one.finish()
        other.finish()
    }

    @Test func `each interim response is delivered on the client's own loop, later and in order`() throws {
        try onTwoLoops { one, other in
            let waiters = WaitersElsewhere()
            let ears = [one, other].map { (ear: Ear(), loop: $0) }
            for (ear, loop) in ears { ear.hear(waiters, on: loop) }
            let found = ears.map { waiters.waiter(on: $0.loop.handle) === $0.ear }
            #expect(found == [true, true])
            waiters.append(ByteSlice("a"))
            #expect(ears.allSatisfy { $0.ear.heard.isEmpty }, "not from inside")
            run(one)
            #expect(ears.map(\.ear.heard) == ["a", ""])
            for text in ["b", "c"] { waiters.append(ByteSlice(text)) }
            run(one, other)
            #expect(ears.allSatisfy { $0.ear.heard == "abc" })
        }
    }

    @Test func `a late joiner gets earlier interim responses once, before later ones`() throws {
        try onTwoLoops { one, other in
            let waiters = WaitersElsewhere()
            for text in ["a", "b"] { waiters.append(ByteSlice(text)) }
            let late = [one, other].map { (ear: Ear(), loop: $0) }
            for (ear, loop) in late { ear.hear(waiters, on: loop) }
            waiters.append(ByteSlice("c"))
            run(one, other)
            #expect(late.allSatisfy { $0.ear.heard == "abc" })
        }
    }

    @Test func `a client that joins while another thread appends misses no interim response`() throws {
        let shared = Shared()
        let count = 300
        let writer = try LoopThread(name: "writer") { _ in
            for number in 0..<count { shared.waiters.append(ByteSlice("\(number) ")) }
        }
        let loop = try EventLoop()
        let ears = (0..<count).map { _ in
            let ear = Ear()
            ear.hear(shared.waiters, on: loop)
            run(loop)
            return ear
        }
        writer.join()
        run(loop)
        loop.finish()
        let all = (0..<count).map { "\($0) " }.joined()
        #expect(ears.allSatisfy { $0.heard == all })
    }

    @Test func `a client that has left gets no interim response and is released`() throws {
        try onTwoLoops { one, _ in
            let waiters = WaitersElsewhere()
            let stays = Ear()
            weak var left: Ear?
            do {
                let leaves = Ear()
                left = leaves
                leaves.hear(waiters, on: one)
                waiters.append(ByteSlice("a"))
                run(one)
                waiters.remove(stays, on: one.handle)
                let present = waiters.waiter(on: one.handle)
                #expect(present === leaves, "another one has left")
                waiters.remove(leaves, on: one.handle)
                waiters.append(ByteSlice("b"))
                run(one)
                #expect(leaves.heard == "a")
            }
            #expect(left == nil)
            stays.hear(waiters, on: one)
            waiters.append(ByteSlice("c"))
            run(one)
            #expect(stays.heard == "abc")
        }
    }

    @Test func `after the final response nobody is told anything, and who joins gets nothing`() throws {
        try onTwoLoops { one, other in
            let waiters = WaitersElsewhere()
            let ear = Ear()
            ear.hear(waiters, on: one)
            waiters.append(ByteSlice("a"))
            waiters.endInterims()
            waiters.append(ByteSlice("b"))
            run(one)
            #expect(ear.heard == "a", "what came before is on its way")
            let present = waiters.waiter(on: one.handle)
            #expect(present === ear, "its result is on its way")
            let late = Ear()
            late.hear(waiters, on: other)
            run(other)
            #expect(late.heard.isEmpty)
        }
    }
}
