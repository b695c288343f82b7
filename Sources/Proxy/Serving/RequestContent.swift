import Bytes
import HTTPSemantics
import Upstream

/// A request's content on its way from its client to its fetch. Held by its transaction, and written only here.
struct RequestContent {
    /// What a client is to do when all that came of its content is taken.
    enum Wanted {
        /// To send more, soon.
        case more
        /// To send a little, if it likes. That is read, also to notice the client leave; but nothing is waited for.
        case little
        /// To wait, until it is told to go on.
        case nothing
    }

    /// What is here of content that is read ahead, until its fetch has it.
    fileprivate var ahead: OutgoingContent?
    /// Whether the client must wait until its fetch has sent what it has.
    fileprivate var isClientPaused = false

    /// For the fetch that sends it.
    mutating func takeAhead() -> OutgoingContent? { ahead.take() }

    /// Nobody sends it any more.
    mutating func forget() { ahead = nil }
}

/// What the client's connection tells of the content, and where it goes.
extension Transaction {
    /// RFC 9110 §15.2.1.
    private static let goOn = ByteSlice("HTTP/1.1 100 Continue\r\n\r\n")

    /// Begins a request with content: reads that ahead where it may be little, and looks up when it is here; else at
    /// once. May answer before it returns.
    func beginWithContent() {
        guard mayGather else { return look() }
        beginGathering()
        content.ahead = OutgoingContent(UpstreamRequest.Content(request.head.framing))
        // The origin, which is not asked yet, cannot say it.
        if request.awaitsContinue { client.send(interim: Self.goOn) }
    }

    /// Content that is known to be more is not waited for: its client may send the rest as slowly as it likes after any
    /// beginning, and what is streamed is copied nowhere. Nor is content whose client asks for that (RFC 10036).
    private var mayGather: Bool {
        let fields = request.fields
        if fields.view.asksForIncrementalForwarding { return false }
        let most = worker.settings.clients.bodyBuffer
        return switch request.head.framing {
        case .length(let length): length <= UInt64(most) && worker.shared.hasRoomAhead(for: Int(length))
        case .chunked: most > 0 && worker.shared.hasRoomAhead(for: 0)
        case .none, .untilClose: false
        }
    }

    /// - Returns: whether the piece is kept; else it is too much, or there is no memory for it.
    private func gather(_ content: Span<UInt8>) -> Bool {
        guard let ahead = self.content.ahead, ahead.count + content.count <= worker.settings.clients.bodyBuffer else {
            return false
        }
        return ahead.append(content, reservingOf: worker.shared)
    }

    /// Whether a piece may be as large as a read of content brings. What has to be kept is read in small pieces: before
    /// a fetch has its slot, and content of which the next piece may show that it is too much to be read ahead.
    var takesLargePieces: Bool {
        state == .gathering ? request.head.framing != .chunked : unsharedFetch?.hasBegun ?? true
    }

    /// All that came is taken: what is wanted next. Where that is not more, `client.resumeContent` follows.
    func wantsContent() -> RequestContent.Wanted {
        guard let unsharedFetch, !unsharedFetch.hasBegun else { return .more }
        content.isClientPaused = true
        // Without memory for it, better not read at all than refused.
        return unsharedFetch.hasEarlyContent || !worker.shared.hasRoomAhead(for: ReadContexts.bufferSize)
            ? .nothing : .little
    }

    /// A piece of content from the client. Where no more is read ahead the request may be answered before this returns.
    /// - Returns: false when no more can be taken at the moment.
    func receive(content: Span<UInt8>) -> Bool {
        if state == .gathering {
            if gather(content) { return true }
            endGathering()
            look()
        }
        guard let unsharedFetch else { return true }
        guard unsharedFetch.hasBegun else {
            if !unsharedFetch.bufferEarly(content) { contentFoundNoMemory() }
            return true
        }
        let goesOn = unsharedFetch.send(content)
        self.content.isClientPaused = !goesOn
        return goesOn
    }

    /// Ends the content. Like `receive`, this may answer the request.
    func endContent(trailers: ByteSlice?) {
        guard state == .gathering else {
            unsharedFetch?.endContent(trailers: trailers)
            return
        }
        content.ahead?.end(trailers: trailers)
        endGathering()
        look()
    }

    func fetchTakesContent(_ fetch: Fetch) {
        guard content.isClientPaused else { return }
        content.isClientPaused = false
        client.resumeContent()
    }
}

extension OutgoingContent {
    /// Adds a piece, in memory of the budget.
    /// - Returns: false, with nothing done, when there is none.
    func append(_ content: Span<UInt8>, reservingOf shared: SharedState) -> Bool {
        let lack = lack(for: content.count)
        if lack > 0 {
            guard shared.reserveAhead(lack) else { return false }
            grow(for: content.count, reservedOf: shared.budget)
        }
        append(content)
        return true
    }
}
