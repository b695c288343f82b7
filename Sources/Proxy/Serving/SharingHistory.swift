/// What the fetches that a request shared have brought it, from its look-up on: whether it shares another, and for how
/// long it waits for that.
///
/// ```
/// untried ─too slow→ waited
///    │                  │
/// released            released
///    ↓                  ↓
/// released ─too slow→ released, has waited
///    └──────────────────┴─released→ given up;  any ─an error that is not shared→ given up
/// ```
enum SharingHistory: Equatable {
    /// None has ended without serving it.
    case untried
    /// One was too slow for it: it waits for the next like any other request, but as long as that takes
    /// (`Transaction.waitedTooLong`).
    case waited
    /// The response of one was not for it. The next may be: it is looked up again like any other.
    case released(hasWaited: Bool)
    /// The request's fetches are for it alone. Released twice, it would learn nothing from a third fetch of a key that
    /// nobody may share.
    case givenUp(wasReleased: Bool)

    /// Whether one brought what it could not have.
    var wasReleased: Bool {
        switch self {
        case .untried, .waited: false
        case .released: true
        case .givenUp(let wasReleased): wasReleased
        }
    }

    /// Whether it gave up the wait for one that was too slow.
    var hasWaited: Bool {
        switch self {
        case .untried, .givenUp: false
        case .waited: true
        case .released(let hasWaited): hasWaited
        }
    }

    var isGivenUp: Bool {
        switch self {
        case .untried, .waited, .released: false
        case .givenUp: true
        }
    }

    /// Whether nothing was learnt for it that the look-up of another request with the same head would not find.
    var looksLikeAnyOther: Bool {
        switch self {
        case .untried, .waited: true
        case .released, .givenUp: false
        }
    }

    /// The response of a fetch that it waited for is not for it.
    mutating func noteRelease() {
        switch self {
        case .untried: self = .released(hasWaited: false)
        case .waited: self = .released(hasWaited: true)
        case .released, .givenUp: self = .givenUp(wasReleased: true)
        }
    }

    /// A fetch took too long.
    mutating func noteWait() {
        switch self {
        case .untried: self = .waited
        case .released: self = .released(hasWaited: true)
        case .waited, .givenUp: break
        }
    }

    /// A fetch brought an error that is not shared.
    mutating func giveUp() { self = .givenUp(wasReleased: wasReleased) }
}
