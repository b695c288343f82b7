import CLibevent
import Glibc

/// What libevent has to say beside what it answers its callers, such as that the kernel refused to watch a descriptor.
///
/// By itself it writes that to standard error and waits for whoever reads there: a loop would stand still with all its
/// clients.
public enum LibeventMessages {
    /// How grave a message is, as far as it makes a difference to what follows.
    public enum Severity: Sendable {
        /// The program goes on.
        case warning
        /// The program ends after it.
        case fatal
    }

    /// Takes one message, without a newline.
    public typealias Receiver = @Sendable (Severity, String) -> Void

    private static let receiver = Lock<Receiver?>(nil)

    /// From now on `receiver` is told, on the thread of the loop that is concerned; it must not wait. To be called
    /// before there are loops.
    public static func send(to receiver: @escaping Receiver) {
        Self.receiver.withLock { $0 = receiver }
        unsafe event_set_log_callback { severity, text in
            guard severity != EVENT_LOG_DEBUG, let text = unsafe text else { return }
            LibeventMessages.tell(severity == EVENT_LOG_ERR ? .fatal : .warning, unsafe String(cString: text))
        }
    }

    /// Writes to standard error where nobody receives messages: then it is a command, of which nobody waits for
    /// anything else.
    static func tell(_ severity: Severity, _ text: String) {
        if let receiver = receiver.withLock({ $0 }) { return receiver(severity, text) }
        let line = text + "\n"
        _ = unsafe line.withCString { unsafe write(STDERR_FILENO, $0, strlen($0)) }
    }
}
