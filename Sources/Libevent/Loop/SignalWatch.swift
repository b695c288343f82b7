import CLibevent
import Glibc

/// Watches for a signal on a loop, until the watch is cancelled or the loop ends. The loop keeps the watch alive.
@safe public final class SignalWatch {
    private var watch: Watch?
    private let action: () -> Void
    /// Alive whenever `watch` is set: the loop empties its signals before it is deinitialized.
    private unowned let loop: EventLoop

    fileprivate init(_ number: Int32, on loop: EventLoop, action: @escaping () -> Void) throws(SystemError) {
        self.loop = loop
        self.action = action
        watch = try unsafe Watch(loop.base, number, EV_SIGNAL | EV_PERSIST, context: context(self)) { _, _, context in
            unsafe watcher(context, as: SignalWatch.self)?.action()
        }
        // The parent program, or this program until now, may have blocked the signal; then one may already be pending.
        var set = sigset_t()
        unsafe sigemptyset(&set)
        unsafe sigaddset(&set, number)
        unsafe pthread_sigmask(SIG_UNBLOCK, &set, nil)
        loop.signals[ObjectIdentifier(self)] = self
    }

    /// Restores the signal's former action. On the loop's thread.
    public func cancel() {
        guard watch != nil else { return }
        watch = nil
        loop.signals[ObjectIdentifier(self)] = nil
    }

    func loopEnds() { watch = nil }
}

extension EventLoop {
    /// Runs `action` on this loop for each arrival of `signal` (`SIGTERM`, …); arrivals close together may count once.
    /// Only one loop of a process may watch for signals (a limit of libevent). On the loop's thread.
    /// - Throws: if `signal` cannot be watched for, or no memory is left.
    @discardableResult
    public func onSignal(_ signal: Int32, _ action: @escaping () -> Void) throws(SystemError) -> SignalWatch {
        try SignalWatch(signal, on: self, action: action)
    }
}
