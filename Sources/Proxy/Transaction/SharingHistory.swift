/// The outcomes, since its look-up, of the fetches that a request shared. They determine whether it shares another, and
/// how long it waits for that one.
struct SharingHistory: Equatable {
    /// Whether a shared fetch brought a response that was not for the request. The next response may be: the request is
    /// looked up again like any other.
    private(set) var wasReleased = false
    /// Whether a fetch was too slow: the request waits for the next like any other request, but until that one ends
    /// (`waitsAsLong`).
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

    /// Whether the request waits until the fetch ends, which the upstream's timeouts ensure, and no shorter: the fetch
    /// has its slot, and the request leads it, or has given up a wait before. A request gives up only one wait: so
    /// requests that gave up together wait together, and the number of fetches follows from the time that passes, not
    /// from the number of clients. If the second wait ended after another `wait-timeout`, all but a few would get 503
    /// as soon as an origin always takes a little longer.
    /// - Parameter ledFetch: the fetch that the request leads. Its own state counts: the operation may have its slot
    ///   while the fetch has not begun yet on this loop.
    func waitsAsLong(as operation: FetchOperation, leading ledFetch: Fetch?) -> Bool {
        if let ledFetch { return ledFetch.hasBegun }
        return hasWaited && operation.hasBegun
    }
}
