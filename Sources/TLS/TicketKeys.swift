public import Bytes
import COpenSSL
import Glibc

/// The keys that encrypt session tickets (RFC 5077, RFC 8446 §4.6.1). A client that returns with a ticket is spared the
/// larger part of a handshake.
///
/// All loops share one object; any thread. The keys come from a file, which several machines may share, or are made
/// here: then a new key takes the place of the current one every `period`, and the former one still opens tickets
/// during one more. A key is made from random bytes, so that a stolen key opens no tickets of other periods.
public final class TicketKeys: Sendable {
    /// The bytes of one key in a file: a name, the key of the tickets' code and the key of their cipher.
    public static let keySize = 80
    /// The most keys of a file.
    public static let mostKeys = 3
    /// How long a key made here encrypts tickets, in seconds, and how long a ticket is valid.
    public static let period: Int64 = 8 * 3600

    struct Key: Equatable {
        let name: [UInt8]
        let code: [UInt8]
        let cipher: [UInt8]

        init(_ bytes: ArraySlice<UInt8>) {
            name = Array(bytes.prefix(16))
            code = Array(bytes.dropFirst(16).prefix(32))
            cipher = Array(bytes.suffix(32))
        }
    }

    private struct Ring {
        /// The first one encrypts.
        var keys: [Key]
        /// When the first one was made, in seconds; `nil` for the keys of a file.
        var madeAt: Int64?
    }

    private let ring: Guarded<Ring>

    /// Seconds of a clock that never goes back. OpenSSL asks for keys in the middle of a handshake, to which no time can
    /// be given.
    static var clock: Int64 {
        var time = timespec()
        unsafe clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec)
    }

    /// Keys that are made here and take turns.
    public init() { ring = Guarded(Ring(keys: [], madeAt: .min)) }

    /// The keys of a file: up to `mostKeys`, each of `keySize` bytes. The first one encrypts, and all open tickets.
    /// - Throws: if the file has another size.
    public init(_ file: NamedFile) throws(TLSSettingsError) {
        let bytes = unsafe file.content.span.withUnsafeBytes { unsafe Array($0) }
        guard !bytes.isEmpty, bytes.count % Self.keySize == 0, bytes.count <= Self.keySize * Self.mostKeys else {
            throw TLSSettingsError(
                file: file.path,
                "it has \(bytes.count) bytes; ticket keys are one to \(Self.mostKeys) times \(Self.keySize) random bytes, the newest first"
            )
        }
        let keys = stride(from: 0, to: bytes.count, by: Self.keySize).map { Key(bytes[$0..<$0 + Self.keySize]) }
        ring = Guarded(Ring(keys: keys, madeAt: nil))
    }

    /// The key that encrypts tickets now; `nil` if there are no random bytes.
    /// - Parameter now: seconds of any clock that never goes back.
    func current(at now: Int64) -> Key? {
        ring.withLock { ring in
            guard let madeAt = ring.madeAt else { return ring.keys.first }
            if madeAt == .min || now - madeAt >= Self.period {
                var bytes = [UInt8](repeating: 0, count: Self.keySize)
                guard unsafe RAND_bytes(&bytes, Int32(bytes.count)) == 1 else { return nil }
                // A key that rested for two periods opens no tickets any more.
                let former = madeAt != .min && now - madeAt < 2 * Self.period ? ring.keys.first : nil
                ring.keys = [Key(bytes[...])] + (former.map { [$0] } ?? [])
                ring.madeAt = now
            }
            return ring.keys.first
        }
    }

    /// The key of that name.
    /// - Returns: also whether the client should get a new ticket, since another key encrypts by now.
    func key(named name: [UInt8], at now: Int64) -> (key: Key, isOld: Bool)? {
        // So that an old key ends even if no ticket is made.
        _ = current(at: now)
        return ring.withLock { ring in
            guard let index = ring.keys.firstIndex(where: { $0.name == name }) else { return nil }
            return (ring.keys[index], index > 0)
        }
    }
}
