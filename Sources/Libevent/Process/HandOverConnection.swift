import Bytes

/// One end of the connection between a program and the one that takes its place. It lasts as long as both of them.
///
/// ```
/// old                                    new
///  │ ─────────── starts it ─────────────→ │ reads the settings, binds addresses, starts its workers
///  │ ←───────────── ready ─────────────── │
///  │ purges are the new one's business    │
///  │ ───────────── accept ──────────────→ │ listens and accepts, beside the old one
///  │ ←──────────── accepting ──────────── │
///  │ accepts no more                      │
///  │ ──────────── released ─────────────→ │ the sockets and the paths of Unix sockets are its own
///  │ ←───────────── purge ─────────────── │ each time that something is purged
///  │ ──────────── purged ───────────────→ │
///  │ its last request ends ─────────────→ │ the end of the connection
/// ```
///
/// Either program may end at any time, which is the end of the connection too.
public class HandOverConnection: Socket {
    /// Each is one byte. Both programs may be of different versions: one that does not know a byte ignores it.
    enum Message: UInt8 {
        case ready = 0x72
        case accept = 0x67
        case accepting = 0x61
        case released = 0x6C
        case purge = 0x70
        case purged = 0x64
    }

    private let input = ByteBuffer(capacity: 16)

    /// Never fills the connection: few messages are on their way, since each purge is a connection of the admin listener.
    /// A failure means that the other program has ended, as the end of the connection will tell.
    func tell(_ message: Message) {
        let bytes = [message.rawValue]
        _ = write(bytes.span)
    }

    func told(_ message: Message) {}

    /// The other program has ended. The connection is closed.
    func hasEnded() {}

    public final override func readable() {
        let input = input
        switch read(into: input) {
        case .bytes:
            while !input.isEmpty, !isClosed {
                let byte = input.span[0]
                input.consume(1)
                if let message = Message(rawValue: byte) { told(message) }
            }
        case .wouldBlock: break
        case .endOfStream, .failed:
            close()
            hasEnded()
        }
    }
}
