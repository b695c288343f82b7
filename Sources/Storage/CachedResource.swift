public import Bytes
public import HTTPSemantics
import Synchronization

/// A snapshot of all that is known under one primary key. A snapshot is immutable: a look-up takes one reference out of
/// the shard and reads the snapshot without the lock. Every change replaces the snapshot.
///
/// Most resources consist of one packed response. Such a resource holds the response directly, without an object around
/// it.
public struct CachedResource: Sendable {
    struct Variant: Sendable {
        let response: StoredResponse
        let slot: EvictionSlot
        /// `StoredResponse.variantHash`.
        let hash: UInt32

        init(response: StoredResponse, slot: EvictionSlot) {
            self.response = response
            self.slot = slot
            hash = response.variantHash
        }

        /// Whether both are the same variant, so that they answer the same requests.
        func isSame(as other: StoredResponse, hash otherHash: UInt32) -> Bool {
            hash == otherHash && response.isSameVariant(as: other)
        }
    }

    enum Form: Sendable {
        case only(StoredResponse)
        case snapshot(ResourceSnapshot)

        /// Whether this form belongs to the resource with the key `other`.
        func has(key other: Span<UInt8>) -> Bool {
            switch self {
            case .only(let response): return response.isPacked(under: other)
            case .snapshot(let snapshot):
                let own = snapshot.key
                return own.span.isEqual(to: other)
            }
        }
    }

    /// The hash of `key`, under the store's secret key.
    public let hash: UInt64
    let form: Form

    init(hash: UInt64, _ form: Form) {
        self.hash = hash
        self.form = form
    }

    /// - Parameter notesSlot: the place in the eviction queues of a resource without variants.
    init(_ contents: Contents, under key: CacheKey, notesSlot: EvictionSlot?) {
        hash = key.hash
        if let response = contents.only {
            response.stand(at: contents.variants[0].slot)
            form = .only(response)
        } else {
            form = .snapshot(ResourceSnapshot(contents, key: key.bytes, notesSlot: notesSlot))
        }
    }

    /// The primary key's bytes (RFC 9111 §2).
    public var key: ByteSlice {
        switch form {
        case .only(let response): response.key ?? .empty
        case .snapshot(let snapshot): snapshot.key
        }
    }

    /// The `Vary` rules of the responses seen, the latest first. They may be known before a response is stored.
    public var knownVary: [VaryRule] {
        switch form {
        case .only: []
        case .snapshot(let snapshot): snapshot.knownVary
        }
    }

    /// The markers of the key.
    var markers: KeyMarkers {
        switch form {
        case .only: KeyMarkers()
        case .snapshot(let snapshot): snapshot.markers
        }
    }

    /// How the key's markers advise a request that no stored response answers.
    public func advice(at now: Moment, hasAuthorization: Bool) -> KeyMarkers.Advice {
        switch form {
        case .only: .share
        case .snapshot(let snapshot): snapshot.markers.advice(at: now, hasAuthorization: hasAuthorization)
        }
    }

    /// Whether the markers say that responses are shared only among requests that are alike (`CachingPolicy.matchForSharing`).
    public func separatesRequests(at now: Moment) -> Bool {
        switch form {
        case .only: false
        case .snapshot(let snapshot): snapshot.markers.separatesRequests(at: now)
        }
    }

    /// Whether the last response without an announced length turned out too large to be stored.
    public func outgrows(at now: Moment) -> Bool {
        switch form {
        case .only: false
        case .snapshot(let snapshot): snapshot.markers.outgrows(at: now)
        }
    }

    /// Whether the last response under a key that several URLs share (`No-Vary-Search`) was not for all of these URLs.
    public func leadsToOwnURL(at now: Moment) -> Bool {
        switch form {
        case .only: false
        case .snapshot(let snapshot): snapshot.markers.leadsToOwnURL(at: now)
        }
    }

    /// The place in the eviction queues of a resource without variants.
    var notesSlot: EvictionSlot? {
        switch form {
        case .only: nil
        case .snapshot(let snapshot): snapshot.notesSlot
        }
    }

    // MARK: - Variants, the latest `Date` first

    /// The number of whole variants, without the variants of which only parts are stored.
    public var count: Int {
        switch form {
        case .only: 1
        case .snapshot(let snapshot): snapshot.count
        }
    }

    /// - Parameter index: below `count`.
    public func response(at index: Int) -> StoredResponse {
        switch form {
        case .only(let response): response
        case .snapshot(let snapshot): snapshot.response(at: index)
        }
    }

    /// The variant that answers a request with `fields`: among several, the first by `StoredResponse.Precedence`, then
    /// the one with the latest `Date` (RFC 9111 §4.1). `VariantIndex` makes this as fast for many variants as for a
    /// few.
    public func response(matching fields: FieldView) -> StoredResponse? {
        switch form {
        case .only(let response): response
        case .snapshot(let snapshot): snapshot.response(matching: fields)
        }
    }

    /// Whether parts of any variant are stored.
    public var hasParts: Bool {
        switch form {
        case .only: false
        case .snapshot(let snapshot): !snapshot.partials.isEmpty
        }
    }

    /// The stored parts of the variant that would answer a request with `fields`: among several, the first by
    /// `StoredResponse.Precedence`, then the parts stored last.
    public func partial(matching fields: FieldView) -> StoredResponse? {
        var search = VariantSearch()
        var found: StoredResponse?
        for partial in partials {
            if let found, partial.response.precedence <= found.precedence { continue }
            if search.finds(partial.response, for: fields) { found = partial.response }
        }
        return found
    }

    /// The whole variants that answer a request with `fields`, variants that do not vary included.
    public func responses(matching fields: FieldView) -> [StoredResponse] {
        var search = VariantSearch()
        return responses.filter { search.finds($0, for: fields) }
    }

    /// The variants of which only parts are stored, selected like `responses(matching:)`.
    public func partialResponses(matching fields: FieldView) -> [StoredResponse] {
        var search = VariantSearch()
        return partialResponses.filter { search.finds($0, for: fields) }
    }

    /// All whole variants.
    public var responses: [StoredResponse] { (0..<count).map { response(at: $0) } }

    /// All variants of which only parts are stored.
    public var partialResponses: [StoredResponse] { partials.map(\.response) }

    /// Whether one of the resource's variants, whole or in parts, has the place `slot` in the eviction queues.
    func stands(at slot: EvictionSlot) -> Bool {
        switch form {
        case .only(let response): response.slot == slot
        case .snapshot(let snapshot):
            snapshot.variants.contains { $0.slot == slot } || snapshot.partials.contains { $0.slot == slot }
        }
    }

    /// All variants, whole or in parts: the resource's entries in the eviction queues, except its notes.
    var allVariants: [Variant] { partials.isEmpty ? variants : variants + partials }

    /// Variants of which only parts are stored, the latest stored first. Callers must never take them for whole
    /// variants.
    var partials: [Variant] {
        switch form {
        case .only: []
        case .snapshot(let snapshot): snapshot.partials
        }
    }

    var variants: [Variant] {
        switch form {
        case .only(let response): [Variant(response: response, slot: response.slot)]
        case .snapshot(let snapshot): snapshot.variants
        }
    }

    // MARK: - Purges of tags

    /// Whether no purge of a tag can have reached a variant since all were checked. Compares one number.
    func isChecked(by tags: TagTable) -> Bool {
        switch form {
        case .only(let response): response.isChecked(at: tags.generation)
        case .snapshot(let snapshot): snapshot.isChecked(by: tags)
        }
    }

    /// Whether no purge of a tag has reached a variant. Then it is noted that all were checked.
    func isUntouched(by tags: TagTable) -> Bool {
        let generation = tags.generation
        func isUntouched(_ response: StoredResponse) -> Bool {
            guard let own = response.tags else { return true }
            guard case .unchanged = own.standing(of: response.facts) else { return false }
            own.checked.store(generation, ordering: .relaxed)
            return true
        }
        switch form {
        case .only(let response): return isUntouched(response)
        case .snapshot(let snapshot):
            guard allVariants.allSatisfy({ isUntouched($0.response) }) else { return false }
            snapshot.checked.store(generation, ordering: .relaxed)
            return true
        }
    }

    // MARK: - Changes

    /// The contents of the snapshot, from which a change starts.
    var contents: Contents { Contents(variants: variants, partials: partials, knownVary: knownVary, markers: markers) }

    /// Bytes charged for the resource itself, without its responses.
    var charge: Int {
        switch form {
        case .only: Charge.place
        case .snapshot(let snapshot): snapshot.charge
        }
    }

    static func charge(of rule: VaryRule) -> Int {
        var charge = Charge.rule
        for index in 0..<rule.count { charge += Charge.nominee + rule.name(at: index).count }
        return charge
    }
}

/// Two values are equal if they are the same snapshot: the resource did not change in between.
extension CachedResource: Equatable {
    public static func == (left: CachedResource, right: CachedResource) -> Bool {
        switch (left.form, right.form) {
        case (.only(let one), .only(let other)): one === other
        case (.snapshot(let one), .snapshot(let other)): one === other
        case (.only, .snapshot), (.snapshot, .only): false
        }
    }
}

/// A resource that is more than one packed response.
final class ResourceSnapshot: Sendable {
    typealias Variant = CachedResource.Variant

    let key: ByteSlice
    /// The variant, if there is exactly one, as for almost every resource. No array is made for it.
    private let only: Variant?
    /// The variants, if there are several.
    private let several: [Variant]
    /// The index of many variants; `nil` for few variants, which are compared one by one.
    private let index: VariantIndex?
    let partials: [Variant]
    let knownVary: [VaryRule]
    let markers: KeyMarkers
    let notesSlot: EvictionSlot?
    /// The highest precedence among the whole variants.
    private let highestPrecedence: StoredResponse.Precedence
    /// Whether a variant has tags.
    private let hasTags: Bool
    /// The number of purges of tags up to which the variants were checked (`ResponseTags.checked`); 0: not yet.
    let checked = Atomic<UInt64>(0)

    init(_ contents: CachedResource.Contents, key: ByteSlice, notesSlot: EvictionSlot?) {
        self.key = key
        highestPrecedence = contents.variants.map(\.response.precedence).max() ?? .unvarying
        only = contents.variants.count == 1 ? contents.variants.first : nil
        several = contents.variants.count > 1 ? contents.variants : []
        index = VariantIndex(contents.variants, under: contents.knownVary)
        partials = contents.partials
        knownVary = contents.knownVary
        markers = contents.markers
        self.notesSlot = notesSlot
        hasTags =
            contents.variants.contains { $0.response.tags != nil }
            || contents.partials.contains { $0.response.tags != nil }
    }

    /// Whether no purge of a tag can have reached a variant since all were checked.
    func isChecked(by tags: TagTable) -> Bool {
        !hasTags || checked.load(ordering: .relaxed) == tags.generation
    }

    var count: Int { only == nil ? several.count : 1 }

    func response(at index: Int) -> StoredResponse {
        if index == 0, let only { return only.response }
        return several[index].response
    }

    func response(matching fields: FieldView) -> StoredResponse? {
        if let only { return only.response.answers(fields) ? only.response : nil }
        if let index { return index.response(matching: fields, among: several) }
        var found: (response: StoredResponse, precedence: StoredResponse.Precedence)?
        var search = VariantSearch()
        for index in 0..<count {
            let response = response(at: index)
            let precedence = response.precedence
            if let found, precedence <= found.precedence { continue }
            guard search.finds(response, for: fields) else { continue }
            if precedence == highestPrecedence { return response }
            found = (response, precedence)
        }
        return found?.response
    }

    var variants: [Variant] { only.map { [$0] } ?? several }

    var charge: Int {
        let beside = max(0, count - 1) + partials.count
        var charge = Charge.resource + key.count + beside * Charge.variant + markers.charge
        for rule in knownVary { charge += CachedResource.charge(of: rule) }
        return charge
    }
}
