import Coalescing
import Routing

/// Whether a fetch goes on when its last client leaves: the policy of its operation, as far as the fetch has set it.
///
/// Belongs to one fetch, on its loop. A change returns the next value: one in place would need a run-time check of
/// exclusive access.
struct Continuation {
    private var withoutClients: Bool

    init(withoutClients: Bool) { self.withoutClients = withoutClients }

    /// Sets whether the fetch outlives its last client. If it may not and no client is left, the fetch ends now.
    consuming func set(withoutClients continues: Bool, _ operation: FetchOperation?, isShared: Bool) -> Self {
        // Under an unchanged policy the last client that left has ended the fetch, but released requests do not leave.
        let changes = continues != withoutClients
        guard changes || (!continues && isShared), let operation else { return self }
        if changes {
            withoutClients = continues
            operation.lastLeavePolicy = continues ? .goOn : .cancel
        }
        if !continues { operation.cancelIfUnattended() }
        return self
    }

    /// Whether a fetch whose response is there may outlive its last client. The head tells: the response must be
    /// storable, and its body must not be one that may never end.
    static func isAllowed(for fetch: Fetch) -> Bool {
        // A fetch that carries a request's content needs its client until that is complete.
        fetch.arriving.willBeStored && !fetch.request.hasContent
            && !(fetch.isIncremental && fetch.arriving.length == nil)
            && (fetch.plan.isRefresh || fetch.context.settings.coalescing.whenLastLeaves == .finish)
    }
}
