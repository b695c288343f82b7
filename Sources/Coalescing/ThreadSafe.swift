/// The isolation of classes that every thread may use at any time. No code ever runs on it.
///
/// An `open` class cannot be `Sendable` in Swift 6 unless it promises so without proof (`@unchecked`) or is isolated to
/// a global actor. `AnyOperation` and its subclasses take the second way: every stored property is a `let` of a
/// `Sendable` type and every method is `nonisolated`, so no call waits for this actor, and the compiler still rejects a
/// subclass that touches a mutable stored property from a method that any thread may call.
///
/// A subclass writes
///
///     final class FetchOperation: CoalescibleOperation<FetchedResponse> {
///         let origin: Origin                        // a `let` of a `Sendable` type needs nothing
///         let exchange = Mutex<Exchange?>(nil)      // mutable state is behind a lock
///
///         nonisolated init(origin: Origin) { self.origin = origin; super.init() }
///         override func execute() { … }             // `nonisolated` is inherited
///     }
///
/// The class's initialisers and its own methods are marked `nonisolated`. Marking the whole class `nonisolated` works
/// as well and saves the words, but then the compiler no longer rejects a stored `var`.
@globalActor
public actor ThreadSafe {
    /// Required by `@globalActor`; no code runs on it.
    public static let shared = ThreadSafe()
}
