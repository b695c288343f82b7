import CLibevent
import Glibc
import Synchronization

/// What libevent does where it cannot go on.
public enum FatalErrors {
    private static let status = Atomic<Int32>(1)

    /// Where libevent cannot go on, which it does not report to its caller (no descriptors for a new loop, say), the
    /// process ends with `status`, after it has said why (`LibeventMessages`). To be called before there are loops.
    public static func setExitStatus(_ status: Int32) {
        Self.status.store(status, ordering: .relaxed)
        event_set_fatal_callback { _ in
            LibeventMessages.tell(
                .fatal,
                "libevent cannot go on; if there are too many open files, raise their limit (ulimit -n, or LimitNOFILE under systemd)"
            )
            // Not `exit`, which waits for what other threads may hold.
            _exit(FatalErrors.status.load(ordering: .relaxed))
        }
    }
}
