import Bytes
import HTTPSemantics
import Storage

/// Heads, responses and keys for tests.
enum Sample {
    static let hasher = KeyedHash(k0: 1, k1: 2)

    static func head(_ fields: [(String, String)]) -> HeadBlock {
        let buffer = ByteBuffer(capacity: 256)
        var lines: [FieldLine] = []
        var present: FieldSet = []
        for (name, value) in fields {
            let start = buffer.count
            buffer.append(string: name)
            let field = KnownField.recognise(Array(name.utf8).span)
            let nameRange = start..<buffer.count
            buffer.append(": ")
            let valueStart = buffer.count
            buffer.append(string: value)
            lines.append(FieldLine(name: ByteRange(nameRange), value: ByteRange(valueStart..<buffer.count), field: field))
            if field != .other { present.insert(field) }
            buffer.append("\r\n")
        }
        return HeadBlock(bytes: buffer.span, lines: lines.span, present: present)
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
    ///   - request: fields of the request that caused it.
    ///   - date: seconds since 1970.
    static func response(
        body: GrowingBody, vary: String? = nil, request: [(String, String)] = [], date: Int64 = 1_000_000,
        tag: String = "x"
    ) -> StoredResponse {
        let head = head([("Cache-Control", "max-age=60"), ("X-Tag", tag)] + (vary.map { [("Vary", $0)] } ?? []))
        let moment = Moment(monotonic: 0, wall: date)
        let facts = ResponseFacts(
            status: .ok, fields: head.view, requested: moment, received: moment, policy: CachingPolicy()
        )
        let rule = VaryRule(head.view) ?? .none
        return StoredResponse(
            head: head, facts: facts, body: body,
            varyRule: rule, variantKey: VariantKey(Self.head(request).view, under: rule)
        )
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
    func hash(_ key: String, collides: Bool = false) -> UInt64 {
        collides ? 42 : Sample.hasher.hash(Array(key.utf8).span)
    }

    func resource(_ key: String, collides: Bool = false) -> CachedResource? {
        store.resource(hash: hash(key, collides: collides), key: Array(key.utf8).span)
    }

    func generation(_ key: String) -> Generation { store.generation(hash: hash(key)) }

    @discardableResult
    func store(
        _ response: StoredResponse, _ key: String, generation: Generation? = nil, popularity: Int = 0, collides: Bool = false
    ) -> StoreOutcome {
        let hash = hash(key, collides: collides)
        return store.store(
            response, hash: hash, key: Array(key.utf8).span, generation: generation ?? store.generation(hash: hash),
            popularity: popularity
        )
    }

    /// A new response with a body of `size` bytes, or `nil` when there is no memory for the body.
    func response(
        _ size: Int = 100, of byte: UInt8 = 0x78, vary: String? = nil, request: [(String, String)] = [],
        date: Int64 = 1_000_000, tag: String = "x"
    ) -> StoredResponse? {
        guard store.makeRoom(bytes: size), let body = Sample.body(size, of: byte, budget: budget) else { return nil }
        return Sample.response(body: body, vary: vary, request: request, date: date, tag: tag)
    }

    @discardableResult
    func put(_ key: String, _ size: Int = 100, popularity: Int = 0) -> StoreOutcome? {
        response(size, tag: key).map { store($0, key, popularity: popularity) }
    }

    func mark(_ key: String, until: Int64 = 100) {
        store.markUnshareable(
            UnshareableMarker(until: until, reason: .setCookie), hash: hash(key), key: Array(key.utf8).span
        )
    }

    @discardableResult
    func learn(_ key: String, vary: String) -> Bool {
        store.learnVary(Sample.rule(vary), hash: hash(key), key: Array(key.utf8).span)
    }

    func invalidate(_ key: String) -> Int { store.invalidate(hash: hash(key), key: Array(key.utf8).span) }
    func invalidate(_ key: String, after former: Generation) -> Generation? {
        store.invalidate(hash: hash(key), key: Array(key.utf8).span, after: former)
    }
    func remove(_ key: String) -> Int { store.remove(hash: hash(key), key: Array(key.utf8).span) }
}

extension CachedResource {
    var responses: [StoredResponse] { (0..<count).map { response(at: $0) } }
}

extension StoredResponse {
    var tag: String {
        let head = head
        let fields = head.view
        return fields.firstIndex(named: Array("X-Tag".utf8).span).map { String(fields.value(at: $0)) } ?? ""
    }
}
