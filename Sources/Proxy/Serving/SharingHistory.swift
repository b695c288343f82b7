/// The outcomes, since its look-up, of the fetches that a request shared. They determine whether it shares another, and
/// how long it waits for that one.
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
    /// No shared fetch has failed to serve the request.
    case untried
    /// One fetch was too slow: the request waits for the next like any other request, but until that one ends
    /// (`Transaction.waitedTooLong`).
    case waited
    /// The response of one fetch was not for the request. The next response may be: the request is looked up again like
    /// any other.
    case released(hasWaited: Bool)
    /// The request's fetches are for it alone. After two releases, a third fetch of a key whose responses cannot be
    /// shared would bring it no response, either.
    case givenUp(wasReleased: Bool)

    /// Whether a shared fetch brought a response that the request could not have.
    var wasReleased: Bool {
        switch self {
        case .untried, .waited: false
        case .released: true
        case .givenUp(let wasReleased): wasReleased
        }
    }

    /// Whether the request stopped waiting for a fetch that was too slow.
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

    /// Whether the look-up of another request with the same head would have the same outcome.
    var looksLikeAnyOther: Bool {
        switch self {
        case .untried, .waited: true
        case .released, .givenUp: false
        }
    }

    /// The response of a fetch that the request waited for is not for it.
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
