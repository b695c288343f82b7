import Glibc
import Libevent
import Testing

@Suite(.timeLimit(.minutes(1))) struct ProcessUsageTests {
    @Test func `each figure is one that a running process can have`() throws {
        let before = ProcessUsage()
        #expect(before.residentBytes > 1 << 20)
        #expect(before.openDescriptors >= 3 && before.openDescriptors <= before.descriptorLimit)
        #expect(before.descriptorLimit >= 256)
        // Busy until the kernel's clock of this process has gone on.
        while ProcessUsage().processorTime == before.processorTime {}
        #expect(ProcessUsage().processorTime > before.processorTime)
    }
}
