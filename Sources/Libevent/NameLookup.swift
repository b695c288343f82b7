/// One question to a `Resolver`, until it is answered or cancelled.
///
/// ```
/// asking ─both families answered, or one of them and the delay is over, timeout→ answering ─end of iteration→ over
///   ↑└─no such name, or no address→ asking for the next name of the search list
/// any ─cancel→ over
/// ```
public final class NameLookup {
    private enum State {
        /// `left`: families whose answer is still to come.
        case asking(left: Int)
        case answering, over
    }

    private let servers: NameServers
    private let port: UInt16
    private let family: Resolver.Family
    private var state = State.answering
    /// Released once over.
    private var completion: ((Resolver.Answer) -> Void)?
    /// What is still to be asked for.
    private var names: ArraySlice<String> = []
    private var found = Resolver.Found([], timeToLive: nil)
    /// Why there is nothing of what has been asked for so far.
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
        // The name servers' answers still come, and find that nobody asks any more.
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

    /// Never inside `resolve`: the caller has not yet kept what it gets back. Nor under c-ares.
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
        // Before the first question, which may be answered at once.
        state = .asking(left: families.count)
        for family in families { servers.ask(name, family) { [self] in receive($0) } }
    }

    /// Not called for a name before the one that is asked for now: that comes only when all of those answers are here.
    private func receive(_ result: Result<Resolver.Found, ResolveError>) {
        guard case .asking(let before) = state else { return }
        let left = before - 1
        state = .asking(left: left)
        switch result {
        case .success(let more): found.add(more)
        case .failure(let error):
            switch reason {
            // That one family could not be asked for tells more than that there is none of the other.
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
        // Not on to names that it is not short for if its servers were well.
        case .timedOut, .serverFailed, .localFailure: answerLater(.failure(reason ?? .serverFailed))
        case nil, .notFound, .badName: askForNext()
        }
    }
}
