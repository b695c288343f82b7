public import Bytes
public import HTTPSemantics

/// Remembers for a while that this key's responses may not be shared, so that nobody queues behind a fetch in vain
/// (hit-for-pass).
public struct UnshareableMarker: Sendable, Equatable {
    /// Nanosecond of the monotonic clock from which on it no longer counts.
    public let until: Int64
    public let reason: NotSharedReason

    public init(until: Int64, reason: NotSharedReason) {
        self.until = until
        self.reason = reason
    }

    public func holds(at now: Moment) -> Bool { now.monotonic < until }
}

/// All that is known under one primary key, as it was at one moment: immutable, so that a look-up leaves the shard with
/// one reference and reads it at leisure. Every change puts another snapshot in its place.
public final class CachedResource: Sendable {
    struct Variant: Sendable {
        let response: StoredResponse
        let slot: EvictionSlot
    }

    /// Under the store's secret key.
    public let hash: UInt64
    /// The primary key's bytes (RFC 9111 §2).
    public let key: ByteSlice
    /// Almost every resource has one variant: it stands here, and no array is made.
    private let newest: Variant?
    private let older: [Variant]
    /// The `Vary` rules seen, latest first; also while no response is stored yet.
    public let knownVary: [VaryRule]
    /// Not shareable, as far as is known. Gone once a response is stored.
    public let marker: UnshareableMarker?
    /// The place in the eviction queues of a resource without variants.
    let notesSlot: EvictionSlot?

    init(
        hash: UInt64, key: ByteSlice, variants: [Variant], knownVary: [VaryRule], marker: UnshareableMarker?,
        notesSlot: EvictionSlot? = nil
    ) {
        self.hash = hash
        self.key = key
        newest = variants.first
        older = variants.count > 1 ? Array(variants[1...]) : []
        self.knownVary = knownVary
        self.marker = marker
        self.notesSlot = notesSlot
    }

    /// Whether it is the resource under `other`.
    func has(key other: Span<UInt8>) -> Bool {
        let own = key
        return own.span.isEqual(to: other)
    }

    // MARK: - Variants, the latest `Date` first

    public var count: Int { newest == nil ? 0 : older.count + 1 }

    /// - Parameter index: below `count`.
    public func response(at index: Int) -> StoredResponse {
        if index == 0, let newest { return newest.response }
        return older[index - 1].response
    }

    /// The variant that answers a request with `fields`: of several, one that varies before one that does not, then the one
    /// with the latest `Date` (RFC 9111 §4.1). Allocates nothing.
    public func response(
        matching fields: FieldView, normalising options: VariantNormalisation = []
    ) -> StoredResponse? {
        guard let newest else { return nil }
        if older.isEmpty, newest.response.varyRule.isEmpty { return newest.response }
        var unvarying: StoredResponse?
        for index in 0..<count {
            let response = response(at: index)
            if response.varyRule.isEmpty {
                if unvarying == nil { unvarying = response }
            } else if response.variantKey.matches(fields, under: response.varyRule, normalising: options) {
                return response
            }
        }
        return unvarying
    }

    var variants: [Variant] { newest.map { [$0] + older } ?? [] }

    /// Bytes it accounts for beside its responses.
    var charge: Int {
        var charge = Charge.resource + key.count + older.count * Charge.variant
        for rule in knownVary { charge += Self.charge(of: rule) }
        return charge
    }

    static func charge(of rule: VaryRule) -> Int {
        var charge = Charge.rule
        for index in 0..<rule.count { charge += Charge.nominee + rule.name(at: index).count }
        return charge
    }
}
