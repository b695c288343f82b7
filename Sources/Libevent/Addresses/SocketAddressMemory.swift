import CLibevent
import Glibc

/// Conversion between `SocketAddress` and the kernel's `sockaddr`.
extension SocketAddress {
    var family: Int32 {
        switch self {
        case .ipv4: AF_INET
        case .ipv6: AF_INET6
        case .unix: AF_UNIX
        }
    }

    /// Calls `body` with the address in the kernel's form. The pointer is valid only inside `body`.
    func withMemory<Result>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> Result) -> Result {
        switch self {
        case .ipv4(let address, let port):
            var memory = sockaddr_in()
            memory.sin_family = sa_family_t(AF_INET)
            memory.sin_port = port.bigEndian
            memory.sin_addr.s_addr = address.bits.bigEndian
            return unsafe Self.pass(&memory, MemoryLayout<sockaddr_in>.size, body)
        case .ipv6(let address, let port, let scope):
            var memory = sockaddr_in6()
            memory.sin6_family = sa_family_t(AF_INET6)
            memory.sin6_port = port.bigEndian
            memory.sin6_addr = address.cValue
            memory.sin6_scope_id = scope
            return unsafe Self.pass(&memory, MemoryLayout<sockaddr_in6>.size, body)
        case .unix(let path):
            var memory = sockaddr_un()
            memory.sun_family = sa_family_t(AF_UNIX)
            unsafe withUnsafeMutableBytes(of: &memory.sun_path) { target in
                // `prefix` keeps the last byte zero, however long the path is.
                unsafe target.copyBytes(from: path.utf8.prefix(Self.longestPath))
            }
            return unsafe Self.pass(&memory, MemoryLayout<sockaddr_un>.size, body)
        }
    }

    private static func pass<Memory, Result>(
        _ memory: inout Memory, _ size: Int, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result
    ) -> Result {
        // Every `sockaddr_*` begins like `sockaddr`; the size says how many bytes there are.
        unsafe withUnsafeBytes(of: &memory) { bytes in
            unsafe body(bytes.baseAddress!.assumingMemoryBound(to: sockaddr.self), socklen_t(size))
        }
    }

    /// The address that the kernel wrote into `memory`; `nil` for other address families.
    init?(_ memory: inout sockaddr_storage, length: socklen_t) {
        // `sockaddr_storage` is large and aligned enough for each of the types it is read as.
        let address: SocketAddress? = unsafe withUnsafeBytes(of: &memory) { bytes in
            unsafe Self.read(bytes, length: Int(length))
        }
        guard let address else { return nil }
        self = address
    }

    /// Reads a `sockaddr` of `length` bytes out of `bytes`.
    static func read(_ bytes: UnsafeRawBufferPointer, length: Int) -> SocketAddress? {
        guard length >= MemoryLayout<sa_family_t>.size, length <= bytes.count else { return nil }
        switch unsafe Int32(bytes.loadUnaligned(as: sa_family_t.self)) {
        case AF_INET where length >= MemoryLayout<sockaddr_in>.size:
            let memory = unsafe bytes.loadUnaligned(as: sockaddr_in.self)
            return .ipv4(
                IPv4Address(bits: UInt32(bigEndian: memory.sin_addr.s_addr)), port: UInt16(bigEndian: memory.sin_port))
        case AF_INET6 where length >= MemoryLayout<sockaddr_in6>.size:
            let memory = unsafe bytes.loadUnaligned(as: sockaddr_in6.self)
            return .ipv6(
                IPv6Address(memory.sin6_addr), port: UInt16(bigEndian: memory.sin6_port), scope: memory.sin6_scope_id)
        case AF_UNIX:
            let path = unsafe bytes[MemoryLayout<sa_family_t>.size..<length].prefix { $0 != 0 }
            return .unix(path: unsafe String(decoding: path, as: UTF8.self))
        default:
            return nil
        }
    }

    /// Asks `query` (`getsockname` or `getpeername`) about `descriptor`.
    static func asking(
        _ call: SystemCall, _ descriptor: Int32,
        _ query: (Int32, UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Int32
    ) throws(SystemError) -> SocketAddress {
        var memory = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let result = unsafe withUnsafeMutableBytes(of: &memory) { bytes in
            unsafe query(descriptor, bytes.baseAddress!.assumingMemoryBound(to: sockaddr.self), &length)
        }
        guard result == 0 else { throw .last(call) }
        guard let address = SocketAddress(&memory, length: length) else { throw SystemError(call, code: EAFNOSUPPORT) }
        return address
    }
}
