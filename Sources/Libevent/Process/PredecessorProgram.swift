/// The program that has started this one to take its place (`HandOverConnection`), as long as it runs.
///
/// ```
/// starting ─tellReady→ ready ─accept→ permitted ─tellAccepting→ accepting ─released→ released
/// any ─its end→ ended
/// ```
///
/// If it ends, its sockets are this program's from then on.
public final class PredecessorProgram: HandOverConnection {
    private var whenPermitted: (() -> Void)?
    private var whenReleased: (() -> Void)?
    /// The purges that it has not finished, in their order.
    private var purges: [() -> Void] = []
    /// Called once, when it has ended.
    public var whenEnded: (() -> Void)?

    /// Whether it accepts no more.
    public var isReleased: Bool { whenReleased == nil }

    /// - Parameter whenReleased: called once on the loop, when the predecessor accepts no more; perhaps before
    ///   `tellAccepting`.
    public init(_ connection: consuming Descriptor, on loop: EventLoop, whenReleased: @escaping () -> Void) {
        self.whenReleased = whenReleased
        super.init(adopting: connection, on: loop)
        startReading()
    }

    /// Tells the predecessor that there is nothing left to do but to listen and to accept.
    /// - Parameter whenPermitted: called once, when this program may do that; at once if the predecessor has ended.
    public func tellReady(_ whenPermitted: @escaping () -> Void) {
        guard !isClosed else { return whenPermitted() }
        self.whenPermitted = whenPermitted
        tell(.ready)
    }

    /// Tells the predecessor that this program accepts.
    public func tellAccepting() { if !isClosed { tell(.accepting) } }

    /// Empties its cache.
    /// - Parameter completion: called once, when no request there gets a response that was fetched before; at once if
    ///   the predecessor has ended.
    public func purge(_ completion: @escaping () -> Void) {
        guard !isClosed else { return completion() }
        purges.append(completion)
        tell(.purge)
    }

    override func told(_ message: Message) {
        switch message {
        case .accept: whenPermitted.take()?()
        case .released: whenReleased.take()?()
        case .purged: if !purges.isEmpty { purges.removeFirst()() }
        case .ready, .accepting, .purge: break
        }
    }

    override func hasEnded() {
        whenPermitted.take()?()
        whenReleased.take()?()
        let unfinished = purges
        purges = []
        for completion in unfinished { completion() }
        whenEnded.take()?()
    }
}
