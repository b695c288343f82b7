import Bytes
import Libevent

/// One request as a `WaiterGroup` sees it. A base class for the same reason as `DeadlineTarget`.
class WaitingRequest: TurnTaker {
    /// The request, whose key may change between look-ups, as more query rules are learnt for its path.
    final var request: ClientRequest
    final let arrival: Arrival
    /// Whether the fetch that the request waits for, or whose response it gets, was made for it.
    final var leads = false
    /// The request's place in its group, which sets it.
    final var place = 0

    // `arrival` is copied here: the caller would also retain one that `init` consumes.
    init(_ request: consuming ClientRequest, _ arrival: borrowing Arrival) {
        self.request = request
        self.arrival = copy arrival
    }

    /// The request may take its result, if there is one.
    func turnCame() {}
    /// Sends one or more interim responses to the client.
    func send(interim: ByteSlice) {}
    /// The request has waited as long as it may.
    func waitedTooLong() {}
}
