import Bytes
import HTTPSemantics
import Logging
import RouteTesting
import Routing
import Storage
import Testing
import Upstream

@testable import Proxy

/// What all loops share, a route, and what is known there, for tests of what is decided by them.
struct World {
    /// What is known under the request's key, since `arrival`.
    enum Known: Sendable {
        /// A response with these fields.
        case response(String)
        /// The same, brought by a request with those fields.
        case variant(String, by: String)
        /// Bytes of a representation of so many, with these fields.
        case part(Range<Int>, of: Int, String)
        /// What was found out about who shares, for a minute.
        case marker(NotSharedReason)
        /// By what responses vary.
        case vary(String)
        /// A cache group that was invalidated.
        case invalidated(group: String)
    }

    enum Change: Sendable {
        case notCached, ignoresDirectives, passesSessions, asksForParts, noRanges
        /// No parts are stored; answers to POST are.
        case storesNoParts, storesPostAnswers
        /// Nobody shares a fetch; or this request no more, since one was in vain.
        case coalescingOff, sharingGivenUp
    }

    let shared: SharedState
    let loopSettings: LoopSettings
    private let route: Route
    private let sharing: Lookup.FetchSharing
    let keys: KeyWriter

    var store: ResponseStore { shared.store }
    private var budget: MemoryBudget { shared.budget }

    init(_ changes: [Change]) {
        shared = SharedState(StorageSettings(), log: Logger(label: "tests") { _ in SwiftLogNoOpLogHandler() })
        keys = KeyWriter(hash: shared.keyHash)
        var settings = ProxySettings()
        var routeSettings = RouteSettings(upstream: "one")
        for change in changes {
            switch change {
            case .notCached: settings.caching.isEnabled = false
            case .ignoresDirectives: settings.caching.policy.ignoredRequestDirectives = .protectsOrigin
            case .passesSessions:
                settings.caching.passCookies = [CookiePattern(ByteSlice("session"), isPrefix: false)]
            case .asksForParts: settings.caching.rangeMisses = .part
            case .noRanges: settings.caching.maxRanges = 0
            case .storesNoParts: settings.caching.policy.storesPartialContent = false
            case .storesPostAnswers: routeSettings.storesPostAnswers = true
            case .coalescingOff, .sharingGivenUp: break
            }
        }
        sharing =
            changes.contains(.sharingGivenUp) ? .givenUp : changes.contains(.coalescingOff) ? .coalescingOff : .shared
        settings.routes = [routeSettings]
        loopSettings = LoopSettings(settings, upstreams: "one")
        guard let only = loopSettings.onlyRoute else { preconditionFailure("it takes all requests") }
        route = only
    }

    func request(_ text: String) throws -> ClientRequest {
        let parsed = try ParsedHead(text)
        keys.write(parsed.head, parsed.fields.view, .http, route)
        return ClientRequest(parsed.head, parsed.fields, route: route, key: keys.key(), visits: 0)
    }

    func lookUp(_ request: ClientRequest, after seconds: Int64) -> Lookup.Outcome {
        Lookup(
            request: request, resource: store.resource(request.key), now: arrival.after(seconds), sharing: sharing
        ).outcome
    }

    /// What is fetched for `request`, by what is known.
    func plan(for request: ClientRequest, after seconds: Int64 = 10) throws -> FetchPlan {
        guard case .fetch(let plan) = lookUp(request, after: seconds) else {
            throw NotFetched()
        }
        return plan
    }

    struct NotFetched: Error {}

    func learn(_ known: Known, of request: ClientRequest) throws {
        let key = request.key
        switch known {
        case .response(let fields): try put(fields, by: "", under: key)
        case .variant(let fields, let asking): try put(fields, by: asking, under: key)
        case .marker(let reason): store.mark(key, reason, until: arrival.after(60).monotonic, at: arrival)
        case .vary(let names):
            let fields = block("Vary: \(names)")
            store.learn(VaryRule(fields.view) ?? .none, for: key)
        case .invalidated(let group):
            shared.invalidate([group], of: request.authority)
        case .part(let range, let length, let fields):
            let body = GrowingBody(budget: budget, expectedLength: range.count)
            let bytes = [UInt8](repeating: 0x78, count: range.count)
            let taken = body.append(bytes.span)
            try #require(taken == .accepted)
            body.complete()
            let (head, facts) = head(fields)
            let response = StoredResponse(
                head: head, facts: facts, body: GrowingBody(joining: [], budget: budget),
                parts: StoredParts([StoredParts.Run(range, body)], length: length))
            let outcome = store.storeParts(
                response, bringing: range, under: key, requestTime: arrival, unless: { false })
            #expect(outcome == .stored)
        }
    }

    private func put(_ fields: String, by asking: String, under key: CacheKey) throws {
        let (head, facts) = head(fields)
        let (request, body) = (block(asking), Array("x".utf8))
        let rule = VaryRule(head.view) ?? .none
        let bytes = key.bytes
        let response = StoredResponse(
            packing: head.bytes.span, body: body.span, under: bytes.span, facts: facts,
            variant: Variant(for: request.view, under: rule), tags: tags(in: head.view))
        let outcome = store.store(response, under: key, requestTime: arrival, unless: { false })
        #expect(outcome == .stored)
    }

    private func tags(in fields: FieldView) -> ResponseTags? {
        shared.tags.tags(in: fields, by: .usual, at: "a.example", requested: shared.tags.generation)
    }

    private func head(_ fields: String) -> (HeadBlock, ResponseFacts) {
        let head = block(fields)
        let facts = ResponseFacts(
            status: .ok, fields: head.view, requestTime: arrival, responseTime: arrival, policy: route.policy)
        return (head, facts)
    }
}
