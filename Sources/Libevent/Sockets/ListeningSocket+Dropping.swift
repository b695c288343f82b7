import Glibc

extension ListeningSocket {
    /// An instruction of the kernel's packet filter (`struct sock_filter`, linux/filter.h).
    private struct Instruction {
        let code: UInt16
        var whenTrue: UInt8 = 0
        var whenFalse: UInt8 = 0
        let operand: UInt32
    }

    /// A program of instructions (`struct sock_fprog`).
    @unsafe private struct Filter {
        let count: UInt16
        let instructions: UnsafeMutablePointer<Instruction>
    }

    /// The option that gives a socket a filter (`SO_ATTACH_FILTER`).
    private static let attachFilter: Int32 = 26

    /// From now on the kernel drops the first segment of each new connection to this socket. The client's kernel sends
    /// the segment again a second later. If the socket is closed by then, another one at the same port takes the
    /// connection. Without this call, the kernel resets a connection that comes between the last accept and the close.
    ///
    /// Call it only when no other program accepts on the socket. It does nothing for Unix sockets and for sockets that
    /// the service manager keeps. Any thread.
    func dropNewConnections() {
        guard !isKept, address.port != nil else { return }
        // The filter sees a segment from its TCP header on. The flags are in the 14th byte (RFC 9293 §3.1).
        var instructions = [
            Instruction(code: 0x30, operand: 13),
            // SYN and ACK; only the first segment of a connection has SYN alone.
            Instruction(code: 0x54, operand: 0x12),
            Instruction(code: 0x15, whenTrue: 0, whenFalse: 1, operand: 0x02),
            Instruction(code: 0x06, operand: 0),
            Instruction(code: 0x06, operand: .max),
        ]
        unsafe instructions.withUnsafeMutableBufferPointer { instructions in
            guard let first = instructions.baseAddress else { return }
            var filter = unsafe Filter(count: UInt16(instructions.count), instructions: first)
            // Without the filter, for lack of memory, a connection may be reset, and all else is the same.
            _ = unsafe setsockopt(
                descriptor.rawValue, SOL_SOCKET, Self.attachFilter, &filter, socklen_t(MemoryLayout<Filter>.size))
        }
    }
}
