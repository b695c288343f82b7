import Glibc
package import Libevent

/// A socket whose callbacks are closures, and which collects what happened.
package final class TestSocket: Socket {
    package var onReadable: (TestSocket) -> Void = { $0.stopReading() }
    package var onWritable: (TestSocket) -> Void = { $0.disarmWrite() }
    package var onConnected: (SystemError?) -> Void = { _ in }
    package var onIterationEnd: (TestSocket) -> Void = { _ in }
    package var onGone: () -> Void = {}
    package var onDeinit: () -> Void = {}
    package override func readable() { onReadable(self) }
    package override func writable() { onWritable(self) }
    package override func connected(_ error: SystemError?) { onConnected(error) }
    package override func peerHasGone() { onGone() }
    package override func iterationEnds() { onIterationEnd(self) }
    deinit { onDeinit() }
}

/// Two sockets that are connected with each other.
/// - Parameter isNarrow: the kernel takes as few bytes as it can be told to before they are read: 4,480 in one write,
///   always as many.
package func socketPair(on loop: EventLoop, isNarrow: Bool = false) -> (TestSocket, TestSocket) {
    var numbers: [Int32] = [0, 0]
    let type = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
    let result = unsafe socketpair(AF_UNIX, type, 0, &numbers)
    precondition(result == 0)
    if isNarrow {
        // The kernel makes it the least that it allows.
        var least: Int32 = 1
        for number in numbers {
            let result = unsafe setsockopt(number, SOL_SOCKET, SO_SNDBUF, &least, socklen_t(MemoryLayout<Int32>.size))
            precondition(result == 0)
        }
    }
    return (
        TestSocket(adopting: Descriptor(adopting: numbers[0]), on: loop),
        TestSocket(adopting: Descriptor(adopting: numbers[1]), on: loop)
    )
}
