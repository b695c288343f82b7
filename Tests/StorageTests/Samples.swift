import Bytes
import HTTPSemantics

@testable import Storage

/// Heads, responses and keys for tests.
enum Sample {
    static let hasher = KeyedHash(k0: 1, k1: 2)
    /// Of a request, so that nothing that is stored came later.
    static let never = Moment(monotonic: .max, wall: 0)

    static func head(_ fields: [(String, String)]) -> HeadBlock {
        HeadBlock(lines: ByteSlice(fields.map { "\($0): \($1)\r\n" }.joined()))
    }

    static func rule(_ vary: String) -> VaryRule { VaryRule(head([("Vary", vary)]).view) ?? .none }

    /// A complete body of `count` bytes, each of them `byte`.
    static func body(_ count: Int, of byte: UInt8 = 0x78, budget: MemoryBudget) -> GrowingBody? {
        let body = GrowingBody(budget: budget, expectedLength: count)
        guard body.append([UInt8](repeating: byte, count: count).span) == .accepted else { return nil }
        body.complete()
        return body
    }

    /// - Parameters:
    ///   - vary: the response's `Vary`.
    ///   - fields: others that it has.
    ///   - request: fields of the request that caused it.
    ///   - date: seconds since 1970.
    ///   - responseTime: nanosecond of the monotonic clock.
    static func response(
        body: GrowingBody, _ cacheControl: String = "max-age=60", vary: String? = nil, fields: [(String, String)] = [],
        request: [(String, String)] = [], date: Int64 = 1_000_000, responseTime: Int64 = 0, tag: String = "x"
    ) -> StoredResponse {
        let head = head(
            [("Cache-Control", cacheControl), ("X-Tag", tag)] + (vary.map { [("Vary", $0)] } ?? []) + fields)
        let moment = Moment(monotonic: responseTime, wall: date)
        let facts = ResponseFacts(
            status: .ok, fields: head.view, requestTime: moment, responseTime: moment, policy: CachingPolicy()
        )
        let rule = VaryRule(head.view) ?? .none
        return StoredResponse(
            head: head, facts: facts, body: body, variant: Variant(for: Self.head(request).view, under: rule))
    }
}

/// A store with keys that are strings.
struct Cache {
    let budget: MemoryBudget
    let settings: StorageSettings
    let store: ResponseStore

    init(memory: Int = 16 << 20, shards: Int = 4, change: (inout StorageSettings) -> Void = { _ in }) {
        budget = MemoryBudget(limit: memory)
        var settings = StorageSettings()
        settings.memory = memory
        settings.shards = shards
        change(&settings)
        self.settings = settings
        store = ResponseStore(settings: settings, budget: budget)
    }

    /// Every key has the same hash where `collides`.
    func key(_ key: String, collides: Bool = false) -> CacheKey {
        let bytes = ByteSlice(key)
        return CacheKey(hash: collides ? 42 : Sample.hasher.hash(bytes.span), bytes: bytes)
    }

    func resource(_ key: String, collides: Bool = false) -> CachedResource? {
        store.resource(self.key(key, collides: collides))
    }

    /// All that is found by a walk from one end of the store to the other.
    func removeAll(where isMeant: (CacheKey) -> Bool) -> Int {
        var (walk, removed) = (ResponseStore.Walk(), 0)
        for _ in 0..<store.shardCount {
            while !store.step(along: &walk, { if isMeant($0) { removed += store.remove($0) } }) {}
        }
        return removed
    }

    @discardableResult
    func store(
        _ response: StoredResponse, _ key: String, popularity: Int = 0, collides: Bool = false,
        unless wasInvalidated: () -> Bool = { false }
    ) -> StoreOutcome {
        let key = self.key(key, collides: collides)
        return store.store(
            response, under: key, requestTime: Sample.never, popularity: popularity, unless: wasInvalidated)
    }

    /// A new response with a body of `size` bytes, or `nil` when there is no memory for the body.
    func response(
        _ size: Int = 100, of byte: UInt8 = 0x78, vary: String? = nil, fields: [(String, String)] = [],
        request: [(String, String)] = [], date: Int64 = 1_000_000, tag: String = "x"
    ) -> StoredResponse? {
        guard store.makeRoom(bytes: size), let body = Sample.body(size, of: byte, budget: budget) else { return nil }
        return Sample.response(body: body, vary: vary, fields: fields, request: request, date: date, tag: tag)
    }

    @discardableResult
    func put(_ key: String, _ size: Int = 100, popularity: Int = 0) -> StoreOutcome? {
        response(size, tag: key).map { store($0, key, popularity: popularity) }
    }

    func mark(_ key: String, until: Int64 = 100, _ reason: NotSharedReason = .prohibited(.setCookie)) {
        store.mark(self.key(key), reason, until: until, at: Moment(monotonic: 0, wall: 0))
    }

    /// After a whole response that everybody may have.
    func forgetMarkers(_ key: String) {
        let body = GrowingBody(lending: .empty)
        let facts = Sample.response(body: body, "public, max-age=60").facts
        store.forgetMarkers(of: self.key(key), after: facts, keepsWhole: true)
    }

    func isMarked(_ key: String) -> Bool { resource(key)?.markers.isEmpty == false }

    func learn(_ key: String, vary: String) { store.learn(Sample.rule(vary), for: self.key(key)) }

    func invalidate(_ key: String) { store.remove(self.key(key), keepsNotes: true) }
    func remove(_ key: String) -> Int { store.remove(self.key(key)) }
}

extension StoredResponse {
    var tag: String {
        let head = head
        let fields = head.view
        return fields.firstIndex(named: Array("X-Tag".utf8).span).map { String(fields.value(at: $0)) } ?? ""
    }
}

extension ResponseStore {
    /// Forgets everything, from one end of the store to the other.
    @discardableResult
    func removeAll() -> Int {
        var (walk, removed) = (Walk(), 0)
        for _ in 0..<shardCount { while !step(along: &walk, { removed += remove($0) }) {} }
        return removed
    }
}
