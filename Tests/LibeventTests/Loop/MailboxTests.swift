import Bytes
import Libevent
import LoopTesting
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(10))) struct MailboxTests {
    @Test func `every job posted from several threads runs exactly once and in its poster's order`() throws {
        let posters = 4
        let jobsEach = 5000
        let seen = Guarded(Array(repeating: [Int](), count: posters))
        let left = Atomic(posters * jobsEach)
        let worker = try LoopThread(name: "worker") { $0.run() }
        let threads = try (0..<posters).map { poster in
            try LoopThread(name: "poster") { _ in
                for job in 0..<jobsEach {
                    let taken = worker.handle.post {
                        seen.withLock { $0[poster].append(job) }
                        if left.subtract(1, ordering: .relaxed).newValue == 0 { worker.stop() }
                    }
                    if !taken { Issue.record("a post was refused") }
                }
            }
        }
        for thread in threads { thread.join() }
        worker.join()
        seen.withLock { #expect($0.allSatisfy { $0 == Array(0..<jobsEach) }) }
    }

    @Test func `a job runs on the loop's thread and never inside the post`() throws {
        try onLoop { loop in
            let handle = loop.handle
            let inside = Atomic(true)
            handle.post {
                #expect(handle.isCurrent)
                let isInside = inside.load(ordering: .relaxed)
                #expect(!isInside)
                handle.stop()
            }
            inside.store(false, ordering: .relaxed)
        }
    }

    @Test func `a job posted by a job runs in the next batch`() throws {
        try onLoop { loop in
            let handle = loop.handle
            let events = Guarded<[String]>([])
            let bound = LoopBound(loop, on: loop)
            handle.post {
                events.withLock { $0.append("outer") }
                bound.value.atIterationEnd { events.withLock { $0.append("end of batch") } }
                handle.post {
                    events.withLock { $0.append("inner") }
                    handle.stop()
                }
            }
            handle.post { events.withLock { $0.append("second") } }
            loop.run()
            #expect(events.withLock { $0 } == ["outer", "second", "end of batch", "inner"])
            handle.stop()
        }
    }

    @Test(arguments: [true, false])
    func `work deferred until the sockets are read comes before posted jobs`(_ postsOwn: Bool) throws {
        final class Reader: IterationReader {
            let whenRead: () -> Void
            init(_ whenRead: @escaping () -> Void) { self.whenRead = whenRead }
            func socketsWereRead() { whenRead() }
        }
        try onLoop { loop in
            let events = Guarded<[String]>([])
            let reader = Reader { events.withLock { $0.append("read") } }
            let handle = loop.handle
            let (left, right) = socketPair(on: loop)
            left.onReadable = { socket in
                socket.stopReading()
                events.withLock { $0.append("socket") }
                loop.atIterationEnd { events.withLock { $0.append("end") } }
                loop.afterReading(reader)
                if postsOwn { handle.post { events.withLock { $0.append("job") } } }
            }
            left.startReading()
            _ = right.write(ByteSlice("x").span)
            if !postsOwn {
                let other = try LoopThread(name: "other") { _ in
                    handle.post { events.withLock { $0.append("job") } }
                }
                other.join()
            }
            loop.schedule(after: 50_000_000) { loop.stop() }
            loop.run()
            let order = events.withLock { $0.filter { $0 != "job" } }
            #expect(order == ["socket", "read", "end"])
            let all = events.withLock { $0 }
            // The bell is one of the sockets, and may be the first.
            let job = all.firstIndex(of: "job") ?? -1
            #expect(job == 2 || !postsOwn && job == 0, "\(all)")
            loop.stop()
        }
    }

    @Test func `a job whose post returned true runs even if the loop is stopped afterwards`() throws {
        let ran = Atomic(0)
        let worker = try LoopThread(name: "worker") { $0.run() }
        worker.handle.post { worker.stop() }
        var taken = 0
        while worker.handle.post({ ran.add(1, ordering: .relaxed) }) { taken += 1 }
        worker.join()
        #expect(ran.load(ordering: .relaxed) == taken)
    }

    @Test func `a post after the end is refused, and the job is released`() throws {
        final class Canary: Sendable {
            let gone: Gate
            init(_ gone: Gate) { self.gone = gone }
            deinit { gone.arrive() }
        }
        let gone = Gate(1)
        let worker = try LoopThread(name: "worker") { _ in }
        worker.join()
        let taken = { (canary: Canary) in worker.handle.post { _ = canary } }(Canary(gone))
        #expect(!taken)
        gone.wait()
    }

    @Test func `another thread can stop a loop that waits`() throws {
        let running = Gate(1)
        let worker = try LoopThread(name: "worker") { loop in
            loop.atIterationEnd { running.arrive() }
            loop.run()
        }
        running.wait()
        worker.stop()
        worker.join()
        #expect(!worker.handle.isCurrent)
    }

    @Test func `a loop stopped before it runs returns at once`() throws {
        let loop = try EventLoop()
        loop.stop()
        loop.run()
    }

    @Test func `the clock stands still within an iteration and moves between two`() throws {
        try onLoop { loop in
            var stamps: [Int64] = []
            loop.schedule(after: 0) {
                stamps.append(loop.now)
                for _ in 0..<10_000 { _ = loop.handle.isCurrent }
                stamps.append(loop.now)
                loop.schedule(after: 5 * millisecond) {
                    stamps.append(loop.now)
                    loop.stop()
                }
            }
            loop.run()
            #expect(stamps.count == 3)
            #expect(stamps[0] == stamps[1])
            #expect(stamps[2] > stamps[1])
            #expect(loop.wallClockSeconds > 1_700_000_000)
            loop.stop()
        }
    }
}
