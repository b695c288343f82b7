import Bytes
import Glibc
import Libevent
import LoopTesting
import Testing

@Suite(.timeLimit(.minutes(10))) struct AppendFileTests {
    private let batch = [UInt8](repeating: 0x61, count: 256 << 10)

    /// A FIFO of one page, and its reading end.
    private func fifo(_ name: String) -> (path: String, reader: Int32) {
        let path = temporaryPath(name)
        unsafe unlink(path)
        #expect(unsafe mkfifo(path, 0o600) == 0)
        let reader = unsafe open(path, O_RDONLY | O_NONBLOCK)
        // F_SETPIPE_SZ
        #expect(fcntl(reader, 1031, 4096) == 4096)
        return (path, reader)
    }

    @Test
    func `a slow reader has a second for each write, and a stuck one is not waited for again`()
        throws
    {
        let (path, reader) = fifo("slow")
        defer {
            close(reader)
            unsafe unlink(path)
        }
        let isWaitedFor = Guarded(true)
        let readerThread = try LoopThread(name: "reader") { loop in
            // A page each 100 ms, which is progress: all of it would take more than six seconds.
            var page = [UInt8](repeating: 0, count: 4096)
            loop.schedule(every: 100 * millisecond) {
                let isLast = isWaitedFor.withLock { !$0 }
                _ = unsafe read(reader, &page, page.count)
                if isLast { loop.stop() }
            }
            loop.run()
        }
        var log = try AppendFile(path: path)
        let began = ContinuousClock.now
        let first = log.write(batch.span)
        #expect(first.error == SystemError(.write, code: EAGAIN))
        #expect(first.written >= 4096 && first.written < batch.count)
        #expect(.now - began < .seconds(5))
        isWaitedFor.withLock { $0 = false }
        readerThread.join()
        // One page at most went in since.
        _ = log.write(batch.span)
        let again = ContinuousClock.now
        let stuck = log.write(batch.span)
        #expect(stuck.written == 0 && .now - again < .milliseconds(900))
    }

    @Test func `a FIFO without a reader takes nothing, and is opened when a reader comes`() throws {
        let (path, reader) = fifo("reader")
        defer { unsafe unlink(path) }
        close(reader)
        var log = try AppendFile(path: path)
        let isOpenAlone = log.isOpen
        #expect(!isOpenAlone)
        let nobody = log.write([0x61, 0x0A].span)
        #expect(nobody.written == 0 && nobody.error?.code == ENXIO)
        let late = unsafe open(path, O_RDONLY | O_NONBLOCK)
        defer { close(late) }
        let somebody = log.write([0x61, 0x0A].span)
        #expect(somebody.written == 2 && somebody.error == nil)
    }
}
