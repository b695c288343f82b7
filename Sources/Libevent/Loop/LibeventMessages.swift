import Bytes
import CLibevent
import Glibc
import Synchronization

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

/// The program's reaction to fatal errors of libevent.
public enum FatalErrors {
    private static let status = Atomic<Int32>(1)

    /// Makes the process exit with `status`, after a message (`LibeventMessages`), on an error that libevent cannot
    /// survive and does not report to its caller, such as no descriptors for a new loop. Call this before loops exist.
    public static func setExitStatus(_ status: Int32) {
        Self.status.store(status, ordering: .relaxed)
        event_set_fatal_callback { _ in
            LibeventMessages.tell(
                .fatal,
                "libevent cannot go on; if there are too many open files, raise their limit (ulimit -n, or LimitNOFILE under systemd)"
            )
            // Do not use `exit`: it waits for locks that other threads may hold.
            _exit(FatalErrors.status.load(ordering: .relaxed))
        }
    }
}
