import Bytes
import Libevent
import LoopTesting
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(10))) struct LoopBoundTests {
    /// Not `Sendable`, and tells on which loop it went.
    final class Resident {
        let home: LoopHandle
        let released: Gate
        init(_ home: LoopHandle, _ released: Gate) {
            self.home = home
            self.released = released
        }
        deinit {
            #expect(home.isCurrent)
            released.arrive()
        }
    }

    @Test func `a value dropped on another thread is released on its loop`() throws {
        let released = Gate(100)
        let handedOver = Gate(1)
        let parcels = Guarded<[LoopBound<Resident>]>([])
        let worker = try LoopThread(name: "home") { loop in
            let handle = loop.handle
            parcels.withLock { parcels in
                parcels = (0..<100).map { _ in LoopBound(Resident(handle, released), on: loop) }
            }
            handedOver.arrive()
            loop.run()
        }
        handedOver.wait()
        parcels.withLock { $0.removeAll() }
        released.wait()
        worker.stop()
        worker.join()
    }

    @Test func `a value dropped while its loop ends is released once`() throws {
        final class Counted {
            let count: Gate
            init(_ count: Gate) { self.count = count }
            deinit { count.arrive() }
        }
        for _ in 0..<50 {
            let released = Gate(1)
            let handedOver = Gate(1)
            let parcel = Guarded<LoopBound<Counted>?>(nil)
            let worker = try LoopThread(name: "home") { loop in
                parcel.withLock { $0 = LoopBound(Counted(released), on: loop) }
                handedOver.arrive()
                loop.run()
            }
            handedOver.wait()
            worker.stop()
            parcel.withLock { $0 = nil }
            worker.join()
            released.wait()
        }
    }

    @Test func `a value is accessible on its loop`() throws {
        try onLoop { loop in
            let bound = LoopBound([1, 2, 3], on: loop)
            let handle = loop.handle
            handle.post {
                #expect(bound.value == [1, 2, 3])
                handle.stop()
            }
        }
    }

    @Test func `access from another thread stops the program`() async {
        await #expect(processExitsWith: .failure) {
            let holder = Guarded<LoopBound<Int>?>(nil)
            let worker = try LoopThread(name: "home") { loop in holder.withLock { $0 = LoopBound(1, on: loop) } }
            worker.join()
            _ = holder.withLock { $0?.value }
        }
    }
}
