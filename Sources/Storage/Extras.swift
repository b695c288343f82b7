import HTTPSemantics
import Synchronization

/// The optional properties of a response: its variant, its tags, its parts. Most responses have none of them, and many
/// only tags, which need no object around them.
enum Extras: Sendable {
    case none
    case tags(ResponseTags)
    case all(AllExtras)

    init(_ variant: Variant?, _ tags: ResponseTags?, parts: StoredParts?) {
        let variant = variant?.rule.isEmpty == false ? variant : nil
        if variant != nil || parts != nil {
            self = .all(AllExtras(variant, tags, parts))
        } else {
            self = tags.map { .tags($0) } ?? .none
        }
    }

    /// `nil` if the response does not vary.
    var variant: Variant? { if case .all(let all) = self { all.variant } else { nil } }
    var parts: StoredParts? { if case .all(let all) = self { all.parts } else { nil } }
    var tags: ResponseTags? {
        switch self {
        case .none: nil
        case .tags(let tags): tags
        case .all(let all): all.tags
        }
    }

    /// Whether a response with them was checked when there had been `generation` purges, or needs no check.
    func areChecked(at generation: @autoclosure () -> UInt64) -> Bool {
        switch self {
        case .none: true
        case .tags(let tags): tags.checked.load(ordering: .relaxed) == generation()
        case .all(let all): all.tags.map { $0.checked.load(ordering: .relaxed) == generation() } ?? true
        }
    }

    /// Bytes of memory, without the bytes that `parts` account for themselves, and without the tags themselves.
    var charge: Int {
        switch self {
        case .none: 0
        case .tags(let tags): tags.charge
        case .all(let all): Charge.extras + (all.tags?.charge ?? 0)
        }
    }
}

/// The properties of a response that has more than tags.
final class AllExtras: Sendable {
    let variant: Variant?
    let tags: ResponseTags?
    let parts: StoredParts?

    fileprivate init(_ variant: Variant?, _ tags: ResponseTags?, _ parts: StoredParts?) {
        self.variant = variant
        self.tags = tags
        self.parts = parts
    }
}
