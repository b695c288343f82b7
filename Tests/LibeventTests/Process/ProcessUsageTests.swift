import Glibc
import Libevent
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(10))) struct ProcessUsageTests {
    @Test func `each figure is possible for a running process`() throws {
        let before = ProcessUsage()
        #expect(before.residentBytes > 1 << 20)
        #expect(before.openDescriptors >= 3 && before.openDescriptors <= before.descriptorLimit)
        #expect(before.descriptorLimit >= 256)
        // Busy until the kernel's clock of this process has gone on.
        while ProcessUsage().processorTime == before.processorTime {}
        #expect(ProcessUsage().processorTime > before.processorTime)
    }

    @Test func `the processor time of a thread is its own`() throws {
        let times = Mutex<[UInt64]>([])
        let thread = try LoopThread(name: "busy") { _ in
            let begin = ProcessUsage.processorTimeOfThisThread
            while ProcessUsage.processorTimeOfThisThread < begin + 20_000_000 {}
            times.withLock { $0 = [begin, ProcessUsage.processorTimeOfThisThread] }
        }
        thread.join()
        let other = try LoopThread(name: "new") { _ in
            times.withLock { $0.append(ProcessUsage.processorTimeOfThisThread) }
        }
        other.join()
        let seen = times.withLock { $0 }
        // A new thread does not begin with what another has used.
        #expect(seen.count == 3 && seen[0] < 20_000_000 && seen[1] >= 20_000_000 && seen[2] < 20_000_000)
    }
}
