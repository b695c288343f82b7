import CLibevent
import Glibc
import Synchronization

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
