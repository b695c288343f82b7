import CLibevent
import Glibc

/// One added libevent `event`: it watches a descriptor, a signal or a timeout.
///
/// Holding the value keeps the watch active. Dropping it removes and frees the event. Its callback then never comes
/// again, even if it was already due in the current iteration. A callback may drop its own watch. The holder is the
/// callback's `context` and must not move or be freed before the watch is.
@safe struct Watch: ~Copyable {
    private let event: OpaquePointer

    /// Begins to watch on the loop's thread.
    /// - Parameter timeout: nanoseconds, or `nil` for none.
    init(
        _ base: OpaquePointer, _ descriptor: Int32, _ kinds: Int32, timeout: Int64? = nil,
        context: UnsafeMutableRawPointer, _ callback: @escaping event_callback_fn
    ) throws(SystemError) {
        guard let event = unsafe event_new(base, descriptor, Int16(kinds), callback, context) else {
            throw SystemError(.watch, code: ENOMEM)
        }
        var interval = timeval(nanoseconds: timeout ?? 0)
        let result = unsafe timeout == nil ? event_add(event, nil) : event_add(event, &interval)
        guard result == 0 else {
            let error = SystemError.last(.watch)
            unsafe event_free(event)
            throw error
        }
        unsafe self.event = event
    }

    deinit { unsafe event_free(event) }
}

extension timeval {
    /// Rounded up to the microsecond; a negative value becomes 0.
    init(nanoseconds: Int64) {
        let microseconds = (max(0, nanoseconds) + 999) / 1000
        self.init(tv_sec: Int(microseconds / 1_000_000), tv_usec: Int(microseconds % 1_000_000))
    }
}

/// The object that a libevent callback was given as context.
///
/// Invariant: every context in this module is an unretained `Object` that owns the `Watch` it was made for, and an
/// event is freed before its owner is. The strong reference returned here keeps the owner alive for the callback.
@inline(__always)
func watcher<Object: AnyObject>(_ context: UnsafeMutableRawPointer?, as _: Object.Type) -> Object? {
    guard let context = unsafe context else { return nil }
    return unsafe Unmanaged<Object>.fromOpaque(context).takeUnretainedValue()
}

/// `object` as a context for a callback; see `watcher`.
@inline(__always)
func context(_ object: AnyObject) -> UnsafeMutableRawPointer {
    unsafe Unmanaged.passUnretained(object).toOpaque()
}
