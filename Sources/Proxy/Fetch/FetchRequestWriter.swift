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

    /// Whether the client that led still waits for 100 from the origin.
    let awaitsContinue: Bool
    /// Whether the client that led is there to get an answer to its own conditions.
    let hasLeader: Bool
    /// The conditions to send; afterwards the ones that the request has.
    private(set) var conditions: Conditions
    /// Whether the request that was written lacks field lines of the client's (`removedFields`).
    private(set) var removesFields = false

    init(under conditions: Conditions, awaitsContinue: Bool, hasLeader: Bool) {
        self.conditions = conditions
        self.awaitsContinue = awaitsContinue
        self.hasLeader = hasLeader
    }

    /// - Parameters:
    ///   - arrival: the arrival of the plan's request.
    ///   - head: the buffer in which the head is put together.
    mutating func write(
        _ plan: FetchPlan, from arrival: Arrival, by settings: LoopSettings, in head: ByteBuffer
    ) -> UpstreamRequest {
        let request = plan.request
        // One client's conditions and range are not forwarded, so that the answer suits all waiters.
        var dropping: FieldSet = plan.isPass ? [] : FieldSet(.ifNoneMatch) | .ifModifiedSince | .range | .ifRange
        if !awaitsContinue { dropping.insert(.expect) }
        let maxForwards = request.maxForwards
        if maxForwards != nil { dropping.insert(.maxForwards) }
        if !arrival.madeID.isNone { dropping.insert(.xRequestID) }
        head.removeAll()
        let (fields, key, address) = (request.fields, request.sentKey, arrival.clientAddress)
        removesFields = settings.requestForwarding.write(
            request.head, fields.view, Self.changes(of: plan, from: arrival, dropping: dropping), host: key.authority,
            clientAddress: address.span, scheme: request.scheme.name, to: head)
        if !plan.isPass { writeConditions(of: plan, to: head) }
        settings.loopDetection.writeLoop(to: head)
        if let maxForwards { head.appendField("Max-Forwards", UInt64(maxForwards - 1)) }
        if !arrival.madeID.isNone {
            head.appendName("X-Request-Id")
            head.append(arrival.madeID)
            head.appendLineEnd()
        }
        head.appendLineEnd()
        if let rules = request.route.requestFields { Self.apply(rules, to: head, of: request, arrival, settings) }
        if let subject = arrival.security?.subject { Self.append(subject, to: head, settings) }
        return UpstreamRequest(
            method: plan.method, head: head.copied(), content: UpstreamRequest.Content(request.head.framing),
            asksForUpgrade: plan.asksForUpgrade,
            mayBeNotModified: plan.isPass ? request.mayBeNotModified : conditions != .none)
    }

    /// Writes the request for another machine of the shared tier that fetches the response: with the client's own URL and
    /// fields, by which that machine finds its fetch.
    /// - Parameter token: of the fetch.
    static func write(
        _ plan: FetchPlan, from arrival: Arrival, by settings: LoopSettings, forMachineWith token: ByteSlice,
        in head: ByteBuffer
    ) -> UpstreamRequest {
        let request = plan.request
        head.removeAll()
        var changes = changes(of: plan, from: arrival, dropping: .conditions | .expect | .maxForwards)
        changes.host = nil
        let (fields, key, address) = (request.fields, request.key, arrival.clientAddress)
        settings.requestForwarding.write(
            request.head, fields.view, changes, host: key.authority, clientAddress: address.span,
            scheme: request.scheme.name, to: head)
        TierMark.append(token, to: head)
        head.appendLineEnd()
        return UpstreamRequest(method: .get, head: head.copied(), mayBeNotModified: false)
    }

    @inline(__always) // Called in two places, of which one is rare: a result would be copied.
    private static func changes(of plan: FetchPlan, from arrival: Arrival, dropping: FieldSet = [])
        -> RequestForwarding.Changes
    {
        let (request, route) = (plan.request, plan.request.route)
        return RequestForwarding.Changes(
            method: plan.method, framing: request.head.framing, dropping: dropping, keyed: route.keyedForwarding,
            // A connection remains a trusted proxy's after a reload that trusts no proxy any more; the policy's rules
            // for `Vary` must hold all the same.
            isFromTrustedProxy: arrival.isFromTrustedProxy && route.policy.forwardsSenders, host: route.hostForOrigin,
            isUpgrading: plan.asksForUpgrade, acceptsTrailers: true)
    }

    /// The fields of the plan's request that its origin does not get. Too slow for the hot path.
    static func removedFields(of plan: FetchPlan, from arrival: Arrival, by settings: LoopSettings) -> [RemovedField] {
        let request = plan.request
        let (fields, key) = (request.fields, request.sentKey)
        let changes = changes(of: plan, from: arrival)
        return fields.lines.indices.compactMap { index in
            let reason = settings.requestForwarding.removal(
                ofLineAt: index, of: fields.view, request.head, changes, host: key.authority,
                scheme: request.scheme.name)
            return reason.map { RemovedField(fields.bytes[fields.lines[index].name.range], $0) }
        }
    }

    /// Applies `request-headers`, to all other fields that the origin gets.
    @inline(never) // Kept out of the code of requests without rules.
    private static func apply(
        _ rules: FieldRules, to head: ByteBuffer, of request: ClientRequest, _ arrival: Arrival,
        _ settings: LoopSettings
    ) {
        let (fields, peer) = (request.fields, arrival.peer)
        let client = settings.client(peer.span, isTrusted: arrival.isFromTrustedProxy, in: fields.view)
        let parts = RequestParts(
            request.head, fields.view, request.scheme, client: client, madeID: arrival.madeID)
        rules.apply(toHeadFrom: 0, in: head, parts)
    }

    /// Appends the subject of the client's certificate. A rule has removed what the client itself sent under that name.
    @inline(never)
    private static func append(_ subject: ByteSlice, to head: ByteBuffer, _ settings: LoopSettings) {
        guard let name = settings.settings.tls.clientSubjectField else { return }
        head.truncate(to: head.count - 2)
        head.append(ByteSlice("\(name): "))
        head.append(subject)
        head.append("\r\n\r\n")
    }

    @inline(never) // Kept out of the code of a pass.
    private mutating func writeConditions(of plan: FetchPlan, to head: ByteBuffer) {
        let fields = plan.request.fields
        var validation = ValidationRequest()
        for candidate in conditions == .none ? [] : plan.candidates {
            let (head, facts) = (candidate.head, candidate.facts)
            // An origin that compares dates would answer 304 without regard to the cookies or fields that the page
            // depends on.
            let isForOthers = facts.contains(.separatesRequests) && plan.request.isPersonal
            validation.add(head.view, facts: facts, byDate: !isForOthers)
        }
        // The client's own tags are sent only if the client is there to get the answer to them.
        if conditions == .storedAndClients, hasLeader, plan.range == nil { validation.merge(client: fields.view) }
        if conditions == .storedAndClients, !validation.hasClientTags { conditions = .stored }
        // Parts need no validator: parts without one are requested again.
        if validation.isEmpty, plan.parts == nil || plan.validates { conditions = .none }
        validation.write(to: head)
        if let range = plan.range { append(range, of: plan, to: head) }
    }

    /// Appends the range that is requested. A missing range is requested only of the representation whose parts are
    /// stored (RFC 9110 §13.1.5: under a strong tag. With a weak one, as a 304 may bring it, the new part is not
    /// combined with them).
    private func append(_ range: ByteRangeSpec, of plan: FetchPlan, to buffer: ByteBuffer) {
        buffer.appendName("Range")
        range.write(to: buffer)
        buffer.appendLineEnd()
        guard conditions != .none, !plan.validates, let parts = plan.former else { return }
        let head = parts.head
        let fields = head.view
        guard let line = fields.firstIndex(of: .etag), fields.entityTag?.isWeak == false else { return }
        buffer.appendField("If-Range", fields.value(at: line))
    }
}
