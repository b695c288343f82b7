import Bytes
import Coalescing
import Libevent
import Testing

@testable import Proxy

/// The 1xx responses of a fetch, told on the loops of those who joined it. Both loops are this thread's, which lets
/// them run in turns.
@Suite struct InterimResponsesTests {
    private final class Ear: FetchWaiter {
        private(set) var heard = ""
        override func received(interim: ByteSlice) { heard += String(interim) }
    }

    /// So that another thread sees them.
    private final class Shared: Sendable {
        let interims = InterimResponses()
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

    @Test func `each is told on its own loop, later, and all of them in order`() throws {
        try onTwoLoops { one, other in
            let interims = InterimResponses()
            let ears = [one, one, other].map { (ear: Ear(), loop: $0) }
            for (ear, loop) in ears { _ = interims.hear(LoopBound(ear, on: loop)) }
            interims.append(ByteSlice("a"))
            #expect(ears.allSatisfy { $0.ear.heard.isEmpty }, "not from inside")
            run(one)
            #expect(ears.map(\.ear.heard) == ["a", "a", ""])
            for text in ["b", "c"] { interims.append(ByteSlice(text)) }
            run(one, other)
            #expect(ears.allSatisfy { $0.ear.heard == "abc" })
        }
    }

    @Test func `who joins later gets what came before, once and before what comes after`() throws {
        try onTwoLoops { one, other in
            let interims = InterimResponses()
            for text in ["a", "b"] { interims.append(ByteSlice(text)) }
            let late = [one, other].map { (ear: Ear(), loop: $0) }
            for (ear, loop) in late { _ = interims.hear(LoopBound(ear, on: loop)) }
            interims.append(ByteSlice("c"))
            run(one, other)
            #expect(late.allSatisfy { $0.ear.heard == "abc" })
        }
    }

    @Test func `who joins while another thread appends misses none`() throws {
        let shared = Shared()
        let count = 300
        let writer = try LoopThread(name: "writer") { _ in
            for number in 0..<count { shared.interims.append(ByteSlice("\(number) ")) }
        }
        let loop = try EventLoop()
        let ears = (0..<count).map { _ in
            let ear = Ear()
            _ = shared.interims.hear(LoopBound(ear, on: loop))
            run(loop)
            return ear
        }
        writer.join()
        run(loop)
        loop.finish()
        let all = (0..<count).map { "\($0) " }.joined()
        #expect(ears.allSatisfy { $0.heard == all })
    }

    @Test func `who has left is told nothing more, and is let go of`() throws {
        try onTwoLoops { one, _ in
            let interims = InterimResponses()
            let stays = Ear()
            weak var left: Ear?
            var token = SlotToken.none
            do {
                let leaves = Ear()
                left = leaves
                token = interims.hear(LoopBound(leaves, on: one))
                interims.append(ByteSlice("a"))
                run(one)
                interims.leave(token)
                interims.append(ByteSlice("b"))
                run(one)
                #expect(leaves.heard == "a")
            }
            #expect(left == nil)
            _ = interims.hear(LoopBound(stays, on: one))
            // Its place has been taken.
            interims.leave(token)
            interims.append(ByteSlice("c"))
            run(one)
            #expect(stays.heard == "abc")
        }
    }

    @Test func `after the end nobody is told anything, and nobody is held`() throws {
        try onTwoLoops { one, other in
            let interims = InterimResponses()
            weak var former: Ear?
            do {
                let ear = Ear()
                former = ear
                _ = interims.hear(LoopBound(ear, on: one))
                interims.append(ByteSlice("a"))
                interims.end()
                interims.append(ByteSlice("b"))
                run(one)
                #expect(ear.heard == "a", "what came before the end is on its way")
            }
            #expect(former == nil)
            let late = Ear()
            let token = interims.hear(LoopBound(late, on: other))
            #expect(token == .none)
            interims.leave(token)
            interims.end()
            run(other)
            #expect(late.heard.isEmpty)
        }
    }
}
