import Glibc

/// A value behind a pthread mutex.
///
/// Not the standard library's `Mutex`: on Linux, with Swift 6.3.1, ThreadSanitizer does not see that one once threads
/// wait for it, and reports races in a program of ten lines. Everything that crosses loops goes through the mailbox's
/// lock, so with this lock the sanitizer's reports about the rest can be trusted.
@safe struct Lock<Value>: ~Copyable, @unchecked Sendable {
    @safe private struct Contents {
        var mutex = unsafe pthread_mutex_t()
        var value: Value
    }

    // `@unchecked Sendable`: `value` is touched only under the mutex, and the mutex never moves.
    private let contents: UnsafeMutablePointer<Contents>

    init(_ value: sending Value) {
        unsafe contents = .allocate(capacity: 1)
        unsafe contents.initialize(to: Contents(value: value))
        unsafe pthread_mutex_init(&contents.pointee.mutex, nil)
    }

    deinit {
        unsafe pthread_mutex_destroy(&contents.pointee.mutex)
        unsafe contents.deinitialize(count: 1)
        unsafe contents.deallocate()
    }

    /// `body` must not wait, nor release an object whose `deinit` could use this lock.
    func withLock<Result>(_ body: (inout Value) -> Result) -> Result {
        unsafe pthread_mutex_lock(&contents.pointee.mutex)
        defer { unsafe pthread_mutex_unlock(&contents.pointee.mutex) }
        return unsafe body(&contents.pointee.value)
    }
}
