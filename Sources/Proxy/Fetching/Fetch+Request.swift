import Bytes
import HTTPSemantics
import Storage
import Upstream

/// The request as the origin gets it.
extension Fetch {
    /// Under which conditions the origin is asked.
    enum Conditions {
        /// The validators of what is stored, together with the tags that only the client that led has (RFC 9111
        /// §4.3.2).
        case storedAndClients
        case stored
        case none
    }

    /// - Parameter conditions: those to ask under; then those that the request has.
    func upstreamRequest(under conditions: inout Conditions) -> UpstreamRequest {
        // One client's conditions and range are not forwarded, so that the answer fits all who wait.
        var dropping: FieldSet = plan.isPass ? [] : FieldSet(.ifNoneMatch, .ifModifiedSince, .range, .ifRange)
        if !awaitsContinue { dropping.insert(.expect) }
        let maxForwards = request.maxForwards
        if maxForwards != nil { dropping.insert(.maxForwards) }
        let isUpgrading = plan.isPass && request.head.asksForUpgrade
        let (framing, head, loopSettings) = (request.head.framing, worker.scratch, worker.loopSettings)
        head.removeAll()
        loopSettings.write(
            request,
            RequestForwarding.Changes(
                method: method, framing: framing, dropping: dropping, keyed: request.route.keyedForwarding,
                // A connection stays a trusted proxy's when a reload trusts nobody any more; what the policy says of
                // `Vary` must hold all the same.
                isFromTrustedProxy: request.isFromTrustedProxy && request.route.policy.forwardsSenders,
                host: request.route.hostForOrigin, isUpgrading: isUpgrading,
                acceptsTrailers: true), to: head)
        if !plan.isPass {
            let validation = validationRequest(conditions)
            if conditions == .storedAndClients, !validation.hasClientTags { conditions = .stored }
            if validation.isEmpty, plan.parts == nil { conditions = .none }
            validation.write(to: head)
            appendRange(to: head, conditions)
        }
        loopSettings.loopDetection.writeLoop(to: head)
        if let maxForwards { head.appendField("Max-Forwards", UInt64(maxForwards - 1)) }
        head.appendLineEnd()
        return UpstreamRequest(
            method: method, head: head.copied(), content: UpstreamRequest.Content(framing), asksForUpgrade: isUpgrading,
            mayBeNotModified: plan.isPass ? request.mayBeNotModified : conditions != .none)
    }

    private func validationRequest(_ conditions: Conditions) -> ValidationRequest {
        let requestFields = request.fields
        var validation = ValidationRequest()
        for stored in conditions == .none ? [] : plan.validated {
            let head = stored.head
            validation.add(head.view, facts: stored.facts)
        }
        // The client's own tags only if it is there to get the answer to them.
        if conditions == .storedAndClients, leader != nil, plan.range == nil {
            validation.merge(client: requestFields.view)
        }
        return validation
    }

    /// The range that is asked for; the missing one only of the representation whose parts are stored (RFC 9110
    /// §13.1.5).
    private func appendRange(to buffer: ByteBuffer, _ conditions: Conditions) {
        guard case .part(let range, let parts, let validates) = plan.purpose else { return }
        buffer.appendName("Range")
        range.write(to: buffer)
        buffer.appendLineEnd()
        guard conditions != .none, !validates, let parts else { return }
        let head = parts.head
        let fields = head.view
        guard let line = fields.firstIndex(of: .etag) else { return }
        buffer.appendField("If-Range", fields.value(at: line))
    }
}

extension LoopSettings {
    /// The request as the origin gets it, without what its fetch adds.
    fileprivate func write(_ request: ClientRequest, _ changes: RequestForwarding.Changes, to head: ByteBuffer) {
        let (fields, address, key) = (request.fields, request.clientAddress, request.sentKey)
        requestForwarding.write(
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
