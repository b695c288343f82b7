import Bytes
import CLibevent
import Glibc

/// libevent's messages beyond the results that its callers get, for example that the kernel refused to watch a
/// descriptor.
///
/// By default libevent writes them to standard error and waits for the reader of standard error: a loop would stand
/// still with all its clients.
public enum LibeventMessages {
    /// The severity of a message, as far as it makes a difference to the program.
    public enum Severity: Sendable {
        /// The program goes on.
        case warning
        /// The program ends after the message.
        case fatal
    }

    /// Takes one message, without a newline.
    public typealias Receiver = @Sendable (Severity, String) -> Void

    private static let receiver = Guarded<Receiver?>(nil)

    /// From now on `receiver` gets each message, on the thread of the loop that caused it; it must not wait. Call this
    /// before loops exist.
    public static func send(to receiver: @escaping Receiver) {
        Self.receiver.withLock { $0 = receiver }
        unsafe event_set_log_callback { severity, text in
            guard severity != EVENT_LOG_DEBUG, let text = unsafe text else { return }
            LibeventMessages.tell(severity == EVENT_LOG_ERR ? .fatal : .warning, unsafe String(cString: text))
        }
    }

    /// Writes to standard error if no receiver is set. The program is then a command without clients that could wait
    /// for it.
    static func tell(_ severity: Severity, _ text: String) {
        if let receiver = receiver.withLock({ $0 }) { return receiver(severity, text) }
        let line = text + "\n"
        _ = unsafe line.withCString { unsafe write(STDERR_FILENO, $0, strlen($0)) }
    }
}
