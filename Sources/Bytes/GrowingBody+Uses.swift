/// The users of a body's memory: the store, and the clients that the body is being sent to.
///
/// ```
/// in use ─stored, and not being sent→ resting
///    ↑────sent, or no longer stored─────────┘
/// ```
///
/// Evicting a resting body frees its bytes. Evicting a body that is being sent would free no memory, so the store
/// passes over that body, and the bytes that the store spends on it do not count as resting either.
struct BodyUses: Sendable {
    // Small integers, because every body has this struct.
    /// How often the body is stored.
    private var stored: Int32 = 0
    private(set) var readers: Int32 = 0
    /// Bytes that the store has reserved on its own account for this body, while the body is stored.
    private var overhead: Int32 = 0
    /// Bytes that the body has reserved itself, while it is stored.
    private var own = 0

    /// The body's share of the resting bytes, beyond the overhead, which the store counts as resting. A body that is
    /// being sent has the negative overhead as its share, which cancels that count.
    private var resting: Int { stored == 0 ? 0 : readers == 0 ? own : -Int(overhead) }

    /// - Returns: the change of `resting` in bytes.
    private mutating func change(_ body: (inout Self) -> Void) -> Int {
        let former = resting
        body(&self)
        return resting - former
    }

    mutating func beginStoring(own: Int, overhead: Int) -> Int {
        change {
            $0.stored += 1
            ($0.own, $0.overhead) = (own, Int32(clamping: overhead))
        }
    }

    mutating func endStoring() -> Int { change { $0.stored -= 1 } }
    mutating func beginReading() -> Int { change { $0.readers += 1 } }
    mutating func endReading() -> Int { change { $0.readers -= 1 } }
}

/// Any thread. The lock of `uses` is held for the counting alone.
extension GrowingBody {
    /// Whether the body is being sent to a client.
    public var isRead: Bool { uses.withLock { $0.readers > 0 } || loans.contains { $0.body.isRead } }

    /// Counts one more client that the body is being sent to.
    public func beginReading() {
        let (rested, isFirst) = uses.withLock { ($0.beginReading(), $0.readers == 1) }
        budget.rest(rested)
        // A joined body has no bytes of its own: the bodies that it borrows from count as being sent.
        if isFirst { for loan in loans { loan.body.beginReading() } }
    }

    /// Counts one less client that the body is being sent to.
    public func endReading() {
        let (rested, wasLast) = uses.withLock { ($0.endReading(), $0.readers == 0) }
        budget.rest(rested)
        if wasLast { for loan in loans { loan.body.endReading() } }
    }

    /// Counts one more stored response with this body. The body has ended. It is whole, or ended short and never had a
    /// window, so its bytes no longer change.
    /// - Parameter overhead: bytes that the store has reserved on its own account for this body.
    public func beginStoring(overhead: Int) {
        let own = ownMemory
        budget.rest(uses.withLock { $0.beginStoring(own: own, overhead: overhead) })
        for loan in loans { loan.body.beginStoring(overhead: 0) }
    }

    /// Counts one less stored response with this body.
    public func endStoring() {
        budget.rest(uses.withLock { $0.endStoring() })
        for loan in loans { loan.body.endStoring() }
    }
}
