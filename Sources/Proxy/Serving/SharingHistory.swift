/// What the fetches that a request shared have brought it, from its look-up on: whether it shares another.
///
/// ```
/// untried ─released→ released ─released→ given up
///    └──────────────────┴─too slow, full, an error that is not shared→ given up
/// ```
enum SharingHistory: Equatable {
    /// None has ended without serving it.
    case untried
    /// The response of one was not for it. The next may be: it is looked up again like any other.
    case released
    /// The request's fetches are for it alone. Released twice, it would learn nothing from a third fetch of a key that
    /// nobody may share; and one as slow as the last would keep it waiting as long again.
    case givenUp(wasReleased: Bool)

    /// Whether one brought what it could not have.
    var wasReleased: Bool {
        switch self {
        case .untried: false
        case .released: true
        case .givenUp(let wasReleased): wasReleased
        }
    }

    var isGivenUp: Bool {
        switch self {
        case .untried, .released: false
        case .givenUp: true
        }
    }

    /// The response of a fetch that it waited for is not for it.
    mutating func noteRelease() {
        switch self {
        case .untried: self = .released
        case .released, .givenUp: self = .givenUp(wasReleased: true)
        }
    }

    /// A fetch took too long, had too many waiters, or brought an error that is not shared.
    mutating func giveUp() { self = .givenUp(wasReleased: wasReleased) }
}
