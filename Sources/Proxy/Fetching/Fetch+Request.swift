import Bytes
import HTTPSemantics
import Storage
import Upstream

/// The request as the origin gets it.
extension Fetch {
    func askUnconditionally() {
        isConditional = false
        exchange?.cancel()
        let exchange = Exchange(upstreamRequest(), pool: worker.pool(of: request.route.origin), handler: self)
        self.exchange = exchange
        exchange.start()
    }

    func upstreamRequest() -> UpstreamRequest {
        var dropping: FieldSet = []
        var conditions = ValidationRequest()
        if !plan.isTransparent {
            // What one client wants of the answer is decided here, so that the answer fits all who wait.
            dropping = FieldSet(.ifNoneMatch, .ifModifiedSince, .range, .ifRange, .expect)
            for stored in isConditional ? plan.resource?.responses ?? [] : [] {
                let head = stored.head
                conditions.add(head.view, facts: stored.facts)
            }
        }
        if request.maxForwards != nil { dropping.insert(.maxForwards) }
        let isUpgrading = plan.isTransparent && request.head.asksForUpgrade
        let content = UpstreamRequest.Content(request.head.framing)
        let fields = request.fields
        let client = request.client
        let head = ByteBuffer(capacity: fields.bytes.count + 256)
        worker.runtime.requestForwarding.write(
            request.head, fields.view,
            RequestForwarding.Exchange(
                method: method, framing: request.head.framing, dropping: dropping, isUpgrading: isUpgrading, acceptsTrailers: true),
            clientAddress: client.span, scheme: "http", to: head
        ) { [worker, request] buffer in
            conditions.write(to: buffer)
            worker.runtime.loopDetection.writeLoop(to: buffer)
            if let hops = request.maxForwards { buffer.appendField("Max-Forwards", UInt64(hops - 1)) }
        }
        return UpstreamRequest(
            method: method, head: head.copied(), content: content, asksForUpgrade: isUpgrading,
            expectsContinue: request.head.expectation == .continue)
    }
}

extension UpstreamRequest.Content {
    init(_ framing: MessageFraming) {
        self = switch framing {
        case .none, .length(0), .untilClose: .none
        case .length: .length
        case .chunked: .chunked
        }
    }
}
