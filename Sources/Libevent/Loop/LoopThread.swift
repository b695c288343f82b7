import Bytes
import CLibevent
import Glibc

/// A thread with a loop of its own.
///
/// `body` is the thread's main function: it builds the objects that live on the loop, calls `loop.run()`, and cleans up
/// when that returns. Then the loop is finished and the thread ends. All signals are blocked on the thread, so that
/// they reach the one thread that watches for them.
public final class LoopThread: Sendable {
    /// The handle of the thread's loop. Any thread.
    public let handle: LoopHandle
    /// `nil` once joined.
    private let thread: Guarded<pthread_t?>

    /// Starts the thread. `handle` accepts posts from now on.
    /// - Parameter name: shown by `top` and debuggers; the kernel keeps 15 bytes of it.
    /// - Throws: if no descriptor, thread or memory is left.
    public init(name: String, body: @escaping @Sendable (EventLoop) -> Void) throws(SystemError) {
        handle = try LoopHandle()
        let start = try Start(name: name, loop: EventLoop(handle: handle), body: body)
        thread = Guarded(try start.launch())
    }

    deinit {
        // If the thread was never joined, it ends by itself and the kernel cleans up.
        thread.withLock { if let thread = $0 { pthread_detach(thread) } }
    }

    /// Makes the loop's `run` return. Any thread.
    public func stop() { handle.stop() }

    /// Waits until the thread has ended. Any thread but this one; a second call returns at once.
    public func join() {
        precondition(!handle.isCurrent, "a thread cannot wait for its own end")
        // The lock is held meanwhile, so that a second caller waits as well.
        thread.withLock { thread in
            guard let running = thread else { return }
            pthread_join(running, nil)
            thread = nil
        }
    }
}

/// The arguments of a new thread. One thread builds the object and hands it over through `pthread_create`; from then on
/// only the other thread uses it.
private final class Start {
    let name: String
    let loop: EventLoop
    let body: @Sendable (EventLoop) -> Void

    init(name: String, loop: EventLoop, body: @escaping @Sendable (EventLoop) -> Void) {
        self.name = name
        self.loop = loop
        self.body = body
    }

    func launch() throws(SystemError) -> pthread_t {
        let parcel = unsafe Unmanaged.passRetained(self)
        var all = sigset_t()
        var before = sigset_t()
        unsafe sigfillset(&all)
        // A new thread inherits its creator's signal mask.
        unsafe pthread_sigmask(SIG_SETMASK, &all, &before)
        var thread = pthread_t()
        let code = unsafe pthread_create(
            &thread, nil,
            { parcel in
                // `launch` retained the object for this thread.
                guard let parcel = unsafe parcel else { return nil }
                unsafe Unmanaged<Start>.fromOpaque(parcel).takeRetainedValue().run()
                return nil
            }, parcel.toOpaque())
        unsafe pthread_sigmask(SIG_SETMASK, &before, nil)
        guard code == 0 else {
            unsafe parcel.release()
            throw SystemError(.pthreadCreate, code: code)
        }
        return thread
    }

    func run() {
        unsafe coalesced_name_thread(name)
        loop.handle.claim()
        body(loop)
        loop.finish()
    }
}
