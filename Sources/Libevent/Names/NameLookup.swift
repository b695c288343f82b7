/// One look-up by a `Resolver`, until it is answered or cancelled.
///
/// ```
/// asking ─both families answered, or one of them and the delay is over, timeout→ answering ─end of iteration→ over
///   ↑└─no such name, or no address→ asking for the next name of the search list
/// any ─cancel→ over
/// ```
public final class NameLookup {
    private enum State {
        /// `left`: the number of families whose answer is still to come.
        case asking(left: Int)
        case answering, over
    }

    private let servers: NameServers
    private let port: UInt16
    private let family: Resolver.Family
    private var state = State.answering
    /// Released once the look-up is over.
    private var completion: ((Resolver.Answer) -> Void)?
    /// The names of the search list that are still to be asked for.
    private var names: ArraySlice<String> = []
    private var found = Resolver.Found([], timeToLive: nil)
    /// The reason why the names asked for so far gave no address.
    private var reason: ResolveError?
    private var limit: Timer?
    private var delay: Timer?

    init(
        _ servers: NameServers, _ port: UInt16, _ family: Resolver.Family,
        _ completion: @escaping (Resolver.Answer) -> Void
    ) {
        self.servers = servers
        self.port = port
        self.family = family
        self.completion = completion
    }

    /// The completion is not called any more, and is released. On the loop's thread.
    public func cancel() {
        // The name servers' answers still come; `receive` ignores them.
        leave(for: .over)
        completion = nil
    }

    /// The only way out of `asking`.
    private func leave(for next: State) {
        limit?.cancel()
        delay?.cancel()
        (limit, delay) = (nil, nil)
        state = next
    }

    /// Never inside `resolve`, whose caller has not yet stored the returned look-up, nor inside a callback of c-ares.
    func answerLater(_ answer: Resolver.Answer) {
        leave(for: .answering)
        servers.loop.atIterationEnd { [self] in
            guard case .answering = state else { return }
            state = .over
            let completion = completion.take()
            completion?(answer)
        }
    }

    func start(_ host: String) {
        limit = servers.loop.schedule(after: servers.timeout) { [weak self] in self?.timeIsUp() }
        names = servers.conf.candidates(for: host)[...]
        askForNext()
    }

    private func askForNext() {
        guard let name = names.popFirst() else { return answerLater(.failure(reason ?? .notFound)) }
        let families = family.each
        // Set before the first question, which may be answered at once.
        state = .asking(left: families.count)
        for family in families { servers.ask(name, family) { [self] in receive($0) } }
    }

    /// Only ever called for the present name: the next name is asked for only when all answers for this one have come.
    private func receive(_ result: Result<Resolver.Found, ResolveError>) {
        guard case .asking(let before) = state else { return }
        let left = before - 1
        state = .asking(left: left)
        switch result {
        case .success(let more): found.add(more)
        case .failure(let error):
            switch reason {
            // That one family's servers failed tells more than that the other family has no address.
            case nil, .notFound, .badName: reason = error
            case .timedOut, .serverFailed, .localFailure: break
            }
        }
        if left == 0 {
            familiesAnswered()
        } else if !found.addresses.isEmpty, delay == nil {
            delay = servers.loop.schedule(after: Resolver.longestDelay) { [weak self] in self?.familiesAnswered() }
        }
    }

    /// The addresses of one family will do, as after `Resolver.longestDelay`.
    private func timeIsUp() {
        answerLater(found.addresses.isEmpty ? .failure(.timedOut) : .success(found.inOrder(port: port)))
    }

    private func familiesAnswered() {
        if !found.addresses.isEmpty { return answerLater(.success(found.inOrder(port: port))) }
        switch reason {
        // Do not go on in the search list: with working servers, this name might have had an address.
        case .timedOut, .serverFailed, .localFailure: answerLater(.failure(reason ?? .serverFailed))
        case nil, .notFound, .badName: askForNext()
        }
    }
}
