/// The outcomes, since its look-up, of the fetches that a request shared. They determine whether it shares another, and
/// how long it waits for that one.
struct SharingHistory: Equatable {
    /// Whether a shared fetch brought a response that was not for the request. The next response may be: the request is
    /// looked up again like any other.
    private(set) var wasReleased = false
    /// Whether a fetch was too slow: the request waits for the next like any other request, but until that one ends
    /// (`Transaction.waitedTooLong`).
    private(set) var hasWaited = false
    /// Whether the request's fetches are for it alone. After two releases, a third fetch of a key whose responses
    /// cannot be shared would bring it no response, either.
    private(set) var isGivenUp = false

    /// Whether the look-up of another request with the same head would have the same outcome.
    var hasOrdinaryLookup: Bool { !wasReleased && !isGivenUp }

    /// The response of a fetch that the request waited for is not for it.
    mutating func noteRelease() {
        isGivenUp = isGivenUp || wasReleased
        wasReleased = true
    }

    /// A fetch took too long.
    mutating func noteWait() { hasWaited = true }

    /// A fetch brought an error that is not shared.
    mutating func giveUp() { isGivenUp = true }
}
