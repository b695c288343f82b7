/// Who needs the memory of a body: the store, and those who send it to clients.
///
/// ```
/// in use ─stored, and nobody reads it→ resting
///    ↑──────read, or not stored any more──┘
/// ```
///
/// A body that rests is evicted for its bytes. The eviction of one that is read would free nothing, so the store passes
/// it over, and what the store spends on it does not rest either.
struct BodyUses: Sendable {
    // Small numbers: this is in every body.
    /// How often it is stored.
    private var stored: Int32 = 0
    private(set) var readers: Int32 = 0
    /// Bytes that the store has on its account, while it is stored.
    private var overhead: Int32 = 0
    /// Bytes that it has reserved itself, while it is stored.
    private var own = 0

    /// What of it rests, beyond all that the store has on its account.
    private var resting: Int { stored == 0 ? 0 : readers == 0 ? own : -Int(overhead) }

    /// - Returns: by how much more of it rests then.
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

/// Any thread. Nothing else is done under the uses' lock.
extension GrowingBody {
    /// Whether somebody sends it.
    public var isRead: Bool { uses.withLock { $0.readers > 0 } || loans.contains { $0.body.isRead } }

    /// Somebody sends it from now on.
    public func beginReading() {
        let (rested, isFirst) = uses.withLock { ($0.beginReading(), $0.readers == 1) }
        budget.rest(rested)
        // Of a joined body its lenders are read: it has no bytes of its own.
        if isFirst { for loan in loans { loan.body.beginReading() } }
    }

    /// One that began to send it is done.
    public func endReading() {
        let (rested, wasLast) = uses.withLock { ($0.endReading(), $0.readers == 0) }
        budget.rest(rested)
        if wasLast { for loan in loans { loan.body.endReading() } }
    }

    /// The store has it, once more. It has ended, and is whole, or ended short and never had a window: its bytes stay the
    /// same.
    /// - Parameter overhead: bytes that the store has reserved on its account.
    public func beginStoring(overhead: Int) {
        let own = ownMemory
        budget.rest(uses.withLock { $0.beginStoring(own: own, overhead: overhead) })
        for loan in loans { loan.body.beginStoring(overhead: 0) }
    }

    /// The store gives it up, once.
    public func endStoring() {
        budget.rest(uses.withLock { $0.endStoring() })
        for loan in loans { loan.body.endStoring() }
    }
}
