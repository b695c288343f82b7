public import Bytes
public import HTTPSemantics

/// All that is known under one primary key, as it was at one moment: immutable, so that a look-up leaves the shard with
/// one reference and reads it at leisure. Every change puts another snapshot in its place.
///
/// Most resources are one packed response and nothing else: that stands here itself, without an object around it.
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

        /// Whether both answer the same requests.
        func isSame(as other: StoredResponse, hash otherHash: UInt32) -> Bool {
            hash == otherHash && response.isSameVariant(as: other)
        }
    }

    enum Form: Sendable {
        case only(StoredResponse)
        case snapshot(ResourceSnapshot)

        /// Whether it is the form of the resource under `other`.
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

    /// - Parameter notesSlot: where one without variants stands in the eviction queues.
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

    /// The `Vary` rules seen, latest first; also while no response is stored yet.
    public var knownVary: [VaryRule] {
        switch form {
        case .only: []
        case .snapshot(let snapshot): snapshot.knownVary
        }
    }

    /// What was found out about it and counts for a while.
    var markers: KeyMarkers {
        switch form {
        case .only: KeyMarkers()
        case .snapshot(let snapshot): snapshot.markers
        }
    }

    /// What a request does when nothing stored answers it, by the key's markers.
    public func advice(at now: Moment, hasAuthorization: Bool) -> KeyMarkers.Advice {
        switch form {
        case .only: .share
        case .snapshot(let snapshot): snapshot.markers.advice(at: now, hasAuthorization: hasAuthorization)
        }
    }

    /// Whether responses are shared only among requests that are alike, as far as is known.
    public func separatesRequests(at now: Moment) -> Bool {
        switch form {
        case .only: false
        case .snapshot(let snapshot): snapshot.markers.separatesRequests(at: now)
        }
    }

    /// Whether the last response whose length was not announced turned out too large to be stored.
    public func outgrows(at now: Moment) -> Bool {
        switch form {
        case .only: false
        case .snapshot(let snapshot): snapshot.markers.outgrows(at: now)
        }
    }

    /// Whether the last response under a key that several URLs share was not for all of them.
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

    /// How many whole variants there are; parts are not among them.
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

    /// The variant that answers a request with `fields`: of several, the first by `StoredResponse.Precedence`, then the
    /// one with the latest `Date` (RFC 9111 §4.1). Where there are many, it is found as quickly (`VariantIndex`).
    public func response(matching fields: FieldView) -> StoredResponse? {
        switch form {
        case .only(let response): response
        case .snapshot(let snapshot): snapshot.response(matching: fields)
        }
    }

    /// Whether there are parts of any variant.
    public var hasParts: Bool {
        switch form {
        case .only: false
        case .snapshot(let snapshot): !snapshot.partials.isEmpty
        }
    }

    /// The parts of the variant that would answer a request with `fields`: of several, the first by
    /// `StoredResponse.Precedence`, then those stored last.
    public func partial(matching fields: FieldView) -> StoredResponse? {
        var search = VariantSearch()
        var found: StoredResponse?
        for partial in partials {
            if let found, partial.response.precedence <= found.precedence { continue }
            if search.finds(partial.response, for: fields) { found = partial.response }
        }
        return found
    }

    /// The whole variants that answer a request with `fields`, and those that do not vary.
    public func responses(matching fields: FieldView) -> [StoredResponse] {
        var search = VariantSearch()
        return responses.filter { search.finds($0, for: fields) }
    }

    /// The variants of which there are parts, likewise.
    public func partialResponses(matching fields: FieldView) -> [StoredResponse] {
        var search = VariantSearch()
        return partialResponses.filter { search.finds($0, for: fields) }
    }

    /// All whole variants.
    public var responses: [StoredResponse] { (0..<count).map { response(at: $0) } }

    /// All variants of which there are parts.
    public var partialResponses: [StoredResponse] { partials.map(\.response) }

    /// Whether one of its variants, whole or in parts, stands at `slot`.
    func stands(at slot: EvictionSlot) -> Bool {
        switch form {
        case .only(let response): response.slot == slot
        case .snapshot(let snapshot):
            snapshot.variants.contains { $0.slot == slot } || snapshot.partials.contains { $0.slot == slot }
        }
    }

    /// All its entries in the eviction queues, except notes.
    var allVariants: [Variant] { partials.isEmpty ? variants : variants + partials }

    /// Variants of which only parts are stored, the latest stored first. Few read them, and never as if they were
    /// whole.
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

    /// What the resource holds, for a change to start from.
    var contents: Contents { Contents(variants: variants, partials: partials, knownVary: knownVary, markers: markers) }

    /// Bytes it accounts for beside its responses.
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

/// Equality means the same snapshot: nothing was stored or learnt in between.
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
    /// Almost every resource has one variant: it stands here, and no array is made.
    private let only: Variant?
    /// Where there are several.
    private let several: [Variant]
    /// Where there are many; `nil`: one is found by comparing each.
    private let index: VariantIndex?
    let partials: [Variant]
    let knownVary: [VaryRule]
    let markers: KeyMarkers
    let notesSlot: EvictionSlot?
    /// Of its whole variants.
    private let highestPrecedence: StoredResponse.Precedence

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
