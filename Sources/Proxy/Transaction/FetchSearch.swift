import Coalescing
import HTTPSemantics
import Libevent
import Routing
import Storage
import Telemetry

/// Finds the fetch that a request waits for, and the group in which it waits: the request leads the fetch, joins it, or
/// has it alone.
///
/// A value made for one look-up. It acts on the transaction, whose state only the transaction changes.
struct FetchSearch {
    private let transaction: Transaction
    private let request: ClientRequest
    private var context: LoopContext { transaction.context }

    init(for transaction: Transaction) {
        self.transaction = transaction
        request = transaction.request
    }

    /// Found under the table's lock instead of a fetch: the store or the query rules changed since the look-up. A
    /// resource is a snapshot, so another identity means that a response was stored, marked or dropped since; the
    /// request is looked up again. This makes look-up, join and lead one step, although the store and the table have
    /// locks of their own: a hit takes the store's alone, and `Coalescing` knows nothing of HTTP.
    private enum Superseded: Sendable { case snapshot }

    /// - Parameter resource: the stored responses and notes from which the plan was made.
    func find(_ plan: consuming FetchPlan, seen resource: CachedResource?) {
        transaction.hasStandIn = plan.hasStandIn
        transaction.provenance.noteAsking(for: plan.reason)
        let fetches = context.fetches(of: request)
        if plan.isShared, plan.range != nil {
            let advice = resource?.advice(at: context.moment, hasAuthorization: request.hasAuthorization) ?? .share
            if advice != .askForPart, joinWhole(plan) { return }
            if joinLargerPart(plan) { return }
        }
        // Joining costs a cursor; only a new fetch needs memory.
        let isOverloaded = context.isOverloaded
        if isOverloaded, fetches.operation(for: plan.key, as: FetchOperation.self) == nil {
            return transaction.meets(.memory)
        }
        guard plan.isShared else {
            let group = plan.groupAlone
            let operation = context.makeFetch(
                plan, transaction.arrival, leader: transaction,
                awaitsContinue: request.awaitsContinue && transaction.content?.isKept != true)
            return enqueued(fetches.enqueueAloneAtHome(operation, group: group), as: .alone)
        }
        let store = context.shared.store
        var made: WaiterGroup?
        let result = fetches.enqueue(
            plan.key, on: context.loop.handle, accepts: { mayBeServed(by: $0) },
            waiter: { operation in
                let group = WaiterGroup(at: operation, context: context)
                made = group
                return group.waiter
            },
            // A new fetch needs memory.
            replacesFull: context.settings.coalescing.whenExceeded == .pass && !isOverloaded,
            unless: { () -> Superseded? in
                store.resource(request.key) != resource || context.hasLearnt(about: request) ? .snapshot : nil
            },
            make: { context.makeFetch(copy plan, transaction.arrival, leader: transaction) })
        if plan.range != nil, case .started(let operation, _) = result {
            // Lets `joinLargerPart` find the fetch of a part, unless it finds another one.
            fetches.addAlias(operation, for: anyPart(plan))
        }
        enqueued(result, as: .led, joins: made)
        if resource == nil, case .joined(let operation, _, _) = result { mayBeFollowed(to: operation) }
    }

    /// Whether a response that is there already may answer the request.
    private func mayBeServed(by fetched: FetchedResponse) -> Bool {
        fetched.mayServe(request, arrivedAt: transaction.arrival.time, after: transaction.arrival.generation)
    }

    /// - Parameters:
    ///   - role: the role of the request if it leads.
    ///   - group: the group that was made for the joined fetch; `nil` if there was one.
    private func enqueued<Found>(
        _ result: consuming Enqueued<FetchOperation, Found>, as role: Role, joins group: WaiterGroup? = nil
    ) {
        switch consume result {
        case .found:
            // `Superseded`, not a response.
            transaction.lookAgainAtOnce()
        case .started(let operation, let token):
            let group = WaiterGroup(at: operation, context: context)
            group.beginGathering(token)
            transaction.lead(in: group, as: role)
        case .joined(let operation, let token, let late):
            operation.noteJoin(of: request)
            joined(operation, token, late: late, group)
        case .refused(let reason, _):
            context.metrics.add(.coalescing(.refused))
            transaction.meets(.refusal(reason))
        }
    }

    /// Joins `operation` without asking the table.
    /// - Returns: why the operation takes no more waiters; `nil` if the request has joined.
    private func join(_ operation: FetchOperation) -> Refusal? {
        var made: WaiterGroup?
        let joining = operation.join(
            on: context.loop.handle, accepts: { mayBeServed(by: $0) }
        ) {
            let group = WaiterGroup(at: operation, context: context)
            made = group
            return group.waiter
        }
        switch joining {
        case .joined(let token, let late):
            joined(operation, token, late: late, made)
            return nil
        case .refused(let refusal):
            return refusal
        }
    }

    /// Waits with the other requests of this loop that have joined `operation`; or, if its response is there, in a
    /// group of its own.
    private func joined(_ operation: FetchOperation, _ token: WaiterToken, late: Bool, _ made: WaiterGroup?) {
        if late {
            let group = WaiterGroup(at: operation, context: context)
            group.serve(operation.value, token)
            return transaction.join(group, late: true)
        }
        if let group = operation.waiter(on: context.loop.handle) as? WaiterGroup {
            return transaction.join(group, late: false)
        }
        let group = made ?? WaiterGroup(at: operation, context: context)
        group.beginGathering(token)
        transaction.join(group, late: false)
    }

    // MARK: Joining without asking the table

    /// Joins the fetch that the previous request joined. No response or note is stored under its key, so its plan would
    /// be the same; and an operation that takes a waiter is still in flight: before another response is stored or
    /// fetched under the key, the operation ends or is closed.
    /// - Returns: false, without a change, if the table must be asked.
    func followLatest() -> Bool {
        guard transaction.sharingHistory.hasOrdinaryLookup, !request.isBound, let group = transaction.latestGroup.group,
            let latest = group.latest, latest === request || (group.isFor(request) && isOrdinary)
        else { return false }
        transaction.provenance.noteAsking(for: request.route.missReason)
        switch join(group.operation) {
        case nil:
            if latest !== request { group.operation.noteJoin(of: request) }
            group.noteFollowing(request)
            return true
        case .full:
            return false
        case .some:
            // The operation is closed or over: the group waits on, and no request joins it.
            transaction.latestGroup.forget()
            return false
        }
    }

    /// Lets the next requests follow this one, which joined `operation` while no response to it is stored, into its
    /// group: they need not ask the table.
    private func mayBeFollowed(to operation: FetchOperation) {
        guard isOrdinary, operation.key.kind == .get(isAuthorized: false), operation.key.variant == nil,
            let group = transaction.group, !mayBeRefused
        else { return }
        // The next requests get this request's route, which must not be that of replaced settings.
        let fields = request.fields
        guard context.loopSettings.route(request.head, fields.view, request.scheme) === request.route else { return }
        // Of two groups at the same time only one is kept: replacing each by the other again and again would cost more
        // than it saves.
        if let latest = transaction.latestGroup.group, latest === group || latest.isGrowing { return }
        group.note(latest: request)
        transaction.latestGroup.offer(group, on: context.loop)
    }

    /// Whether there are access rules for the request: one that follows is not admitted by itself.
    private var mayBeRefused: Bool {
        if request.route.rules?.access != nil { return true }
        let (settings, fields) = (context.loopSettings, request.fields)
        return !settings.routesOfOtherSpellings(
            request.head, fields.view, request.scheme, besides: request.route
        ).isEmpty
    }

    private var isOrdinary: Bool {
        request.method == .get && !request.hasContent && !request.hasPassCookie && request.directives.flags.isEmpty
            && request.fields.present.isDisjoint(with: .changingPlan)
    }

    /// Joins the fetch of the whole, if that is already arriving, instead of fetching a part. Not called if the whole
    /// is known to be too large to keep.
    private func joinWhole(_ plan: FetchPlan) -> Bool {
        joinPart(plan.key.asking(.get(isAuthorized: request.hasAuthorization))) { _ in true }
    }

    /// Joins the fetch of a larger part that is arriving and has all that `plan` asks for, if the range begins within a
    /// window's length of that part's beginning. Further behind, a fetch of its own brings the range sooner. Also, if
    /// the larger part is too large to be kept, a client that needs more of it than the window would get it at the pace
    /// of its slowest reader.
    private func joinLargerPart(_ plan: FetchPlan) -> Bool {
        guard let range = plan.range else { return false }
        return joinPart(anyPart(plan)) { operation in
            operation.range?.begins(with: range, inFirst: context.storage.streamingWindow) == true
        }
    }

    /// - Returns: false if no operation with that key is wanted, or it takes no more waiters.
    private func joinPart(_ key: FetchKey, _ isWanted: (FetchOperation) -> Bool) -> Bool {
        guard let operation = context.fetches(of: request).operation(for: key, as: FetchOperation.self),
            isWanted(operation), join(operation) == nil
        else { return false }
        operation.noteJoin(of: request)
        return true
    }

    private func anyPart(_ plan: FetchPlan) -> FetchKey {
        plan.key.asking(.anyPart(isAuthorized: request.hasAuthorization))
    }
}
