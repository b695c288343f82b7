import Bytes
import HTTPSemantics
import Routing
import Storage
import Upstream

/// Writes the request that the origin gets: the request of the client that led, without the fields that are only this
/// client's, and with the fields that the plan adds instead.
///
/// A temporary value of one fetch, on its loop. It reads and writes only its arguments.
struct FetchRequestWriter {
    /// The conditions that the origin is sent.
    enum Conditions {
        /// The validators of the stored responses, together with the tags that only the client that led has (RFC 9111
        /// §4.3.2).
        case storedAndClients
        case stored
        case none
    }

    let settings: LoopSettings
    /// The arrival of the request that led.
    let arrival: Arrival
    /// Whether the client that led still waits for 100 from the origin.
    let awaitsContinue: Bool
    /// Whether the client that led is there to get an answer to its own conditions.
    let hasLeader: Bool
    /// Whether the request that was written last lacks field lines of the client's (`removedFields`).
    private(set) var removesFields = false

    init(settings: LoopSettings, arrival: Arrival, awaitsContinue: Bool, hasLeader: Bool) {
        self.settings = settings
        self.arrival = arrival
        self.awaitsContinue = awaitsContinue
        self.hasLeader = hasLeader
    }

    /// - Parameters:
    ///   - request: the request that led.
    ///   - conditions: the conditions to send; afterwards the ones that the request has.
    ///   - head: the buffer in which the head is put together.
    mutating func write(
        _ request: ClientRequest, for plan: FetchPlan, under conditions: inout Conditions, in head: ByteBuffer
    ) -> UpstreamRequest {
        // One client's conditions and range are not forwarded, so that the answer suits all waiters.
        var dropping: FieldSet = plan.isPass ? [] : FieldSet(.ifNoneMatch, .ifModifiedSince, .range, .ifRange)
        if !awaitsContinue { dropping.insert(.expect) }
        let maxForwards = request.maxForwards
        if maxForwards != nil { dropping.insert(.maxForwards) }
        let framing = request.head.framing
        head.removeAll()
        let changes = changes(of: request, for: plan, dropping: dropping)
        removesFields = settings.write(request, changes, clientAddress: arrival.clientAddress, to: head)
        if !plan.isPass {
            let validation = validationRequest(request, plan, conditions)
            if conditions == .storedAndClients, !validation.hasClientTags { conditions = .stored }
            // Parts need no validator: parts without one are requested again.
            if validation.isEmpty, plan.parts == nil || plan.stored != nil { conditions = .none }
            validation.write(to: head)
            Self.appendRange(of: plan, conditions, to: head)
        }
        settings.loopDetection.writeLoop(to: head)
        if let maxForwards { head.appendField("Max-Forwards", UInt64(maxForwards - 1)) }
        head.appendLineEnd()
        return UpstreamRequest(
            method: plan.method(for: request), head: head.copied(), content: UpstreamRequest.Content(framing),
            asksForUpgrade: changes.isUpgrading,
            mayBeNotModified: plan.isPass ? request.mayBeNotModified : conditions != .none)
    }

    private func changes(of request: ClientRequest, for plan: FetchPlan, dropping: FieldSet = [])
        -> RequestForwarding.Changes
    {
        RequestForwarding.Changes(
            method: plan.method(for: request), framing: request.head.framing, dropping: dropping,
            keyed: request.route.keyedForwarding,
            // A connection remains a trusted proxy's after a reload that trusts no proxy any more; the policy's rules
            // for `Vary` must hold all the same.
            isFromTrustedProxy: arrival.isFromTrustedProxy && request.route.policy.forwardsSenders,
            host: request.route.hostForOrigin, isUpgrading: plan.isPass && request.head.asksForUpgrade,
            acceptsTrailers: true)
    }

    /// The fields of `request` that its origin does not get. Too slow for the hot path.
    func removedFields(of request: ClientRequest, for plan: FetchPlan) -> [RemovedField] {
        let (fields, key, changes) = (request.fields, request.sentKey, changes(of: request, for: plan))
        var removed: [RemovedField] = []
        for index in fields.lines.indices {
            let reason = settings.requestForwarding.removal(
                ofLineAt: index, of: fields.view, request.head, changes, host: key.authority,
                scheme: request.scheme.name)
            if let reason { removed.append(RemovedField(fields.bytes[fields.lines[index].name.range], reason)) }
        }
        return removed
    }

    private func validationRequest(_ request: ClientRequest, _ plan: FetchPlan, _ conditions: Conditions)
        -> ValidationRequest
    {
        let requestFields = request.fields
        var validation = ValidationRequest()
        for candidate in conditions == .none ? [] : plan.candidates(for: requestFields.view) {
            let (head, facts) = (candidate.head, candidate.facts)
            // An origin that compares dates would answer 304 without regard to the cookies or fields that the page
            // depends on.
            let isForOthers = facts.contains(.separatesRequests) && request.isPersonal
            validation.add(head.view, facts: facts, byDate: !isForOthers)
        }
        // The client's own tags are sent only if the client is there to get the answer to them.
        if conditions == .storedAndClients, hasLeader, plan.range == nil {
            validation.merge(client: requestFields.view)
        }
        return validation
    }

    /// Appends the range that is requested. A missing range is requested only of the representation whose parts are
    /// stored (RFC 9110 §13.1.5: under a strong tag. With a weak one, as a 304 may bring it, the new part is not
    /// combined with them).
    private static func appendRange(of plan: FetchPlan, _ conditions: Conditions, to buffer: ByteBuffer) {
        guard case .part(let range, let parts, let validates) = plan.purpose else { return }
        buffer.appendName("Range")
        range.write(to: buffer)
        buffer.appendLineEnd()
        guard conditions != .none, !validates, let parts else { return }
        let head = parts.head
        let fields = head.view
        guard let line = fields.firstIndex(of: .etag), fields.entityTag?.isWeak == false else { return }
        buffer.appendField("If-Range", fields.value(at: line))
    }
}

extension LoopSettings {
    /// Writes the request in the form that the origin gets, without the fields that its fetch adds.
    /// - Returns: whether the request has field lines that may not be forwarded as they are.
    fileprivate func write(
        _ request: ClientRequest, _ changes: RequestForwarding.Changes, clientAddress address: ByteSlice,
        to head: ByteBuffer
    ) -> Bool {
        let (fields, key) = (request.fields, request.sentKey)
        return requestForwarding.write(
            request.head, fields.view, changes, host: key.authority, clientAddress: address.span,
            scheme: request.scheme.name, to: head)
    }
}

extension UpstreamRequest.Content {
    init(_ framing: MessageFraming) {
        self =
            switch framing {
            case .none, .length(0), .untilClose: .none
            case .length: .length
            case .chunked: .chunked
            }
    }
}
