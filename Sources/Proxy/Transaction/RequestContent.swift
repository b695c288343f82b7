import Bytes
import HTTPSemantics
import Routing
import Upstream

/// A request's content on its way from its client to its fetch. Held by its transaction, and changed only in this file.
struct RequestContent {
    /// How the client's connection goes on once all content received has been taken.
    enum Wanted {
        /// Reading goes on, and the client must send more within the timeout for content.
        case more
        /// A little more is read if it comes, also to notice that the client leaves; but there is no timeout.
        case little
        /// Reading stops until the transaction resumes it, without a timeout.
        case nothing
    }

    /// The content that came before its fetch got a slot: read ahead, or received since. Held in memory of the budget.
    fileprivate var kept: OutgoingContent?
    /// Whether reading is paused until the fetch has sent the content that it holds.
    fileprivate var isClientPaused = false

    var isKept: Bool { kept != nil }

    /// Bytes of content that one read brings into a buffer for heads.
    static let leastRoom = 16 << 10

    /// Drops the content, which no fetch will send any more.
    mutating func forget() { kept = nil }
}

/// The calls by which the client's connection passes the content on, and its way to the fetch.
extension Transaction {
    /// RFC 9110 §15.2.1.
    private static let goOn = ByteSlice("HTTP/1.1 100 Continue\r\n\r\n")

    /// Begins a request with content. If the content may be small, reads it ahead and looks up the request once it is
    /// complete; otherwise looks up at once. May answer before it returns.
    func beginWithContent() {
        guard mayGather else { return look() }
        beginGathering()
        _ = keptContent()
        // The origin, which has not got the request yet, cannot send the 100.
        if request.awaitsContinue { client.send(interim: Self.goOn) }
    }

    /// Whether to read content ahead. Content known to be large is not read ahead: its client may send the rest as
    /// slowly as it likes after any beginning, and streamed content is copied nowhere. Nor is content whose client asks
    /// for incremental forwarding (RFC 10036).
    private var mayGather: Bool {
        let fields = request.fields
        if fields.view.asksForIncrementalForwarding { return false }
        let most = context.settings.clients.bodyBuffer
        return switch request.head.framing {
        case .length(let length): length <= UInt64(most) && context.shared.hasRoomAhead(for: Int(length))
        case .chunked: most > 0 && context.shared.hasRoomAhead(for: 0)
        case .none, .untilClose: false
        }
    }

    /// - Returns: whether the piece is kept; if not, the content is too large, or there is no memory for it.
    private func gather(_ content: Span<UInt8>) -> Bool {
        let kept = keptContent()
        return kept.count + content.count <= context.settings.clients.bodyBuffer
            && kept.append(content, reservingOf: context.shared)
    }

    /// The buffer for content that comes before the fetch has its slot; made when the first content comes.
    private func keptContent() -> OutgoingContent {
        let kept = content.kept ?? OutgoingContent(UpstreamRequest.Content(request.head.framing))
        content.kept = kept
        return kept
    }

    func takeContent() -> OutgoingContent? { content.kept.take() }

    /// Whether a piece may be as large as one read of content. Content that must be kept is read in small pieces:
    /// before a fetch has its slot, and if the next piece may show that the content is too large to be read ahead. Ten
    /// thousand uploads may wait for slots, and would hold 2.5 GiB in large pieces. Some bytes are read even then:
    /// otherwise a client that leaves is not noticed, and takes a slot.
    var takesLargePieces: Bool {
        state == .gathering ? request.head.framing != .chunked : unsharedFetch?.hasBegun ?? true
    }

    /// All content received has been taken. Returns how to go on; unless that is `more`, `client.resumeContent`
    /// follows.
    func wantsContent() -> RequestContent.Wanted {
        guard let unsharedFetch, !unsharedFetch.hasBegun else { return .more }
        content.isClientPaused = true
        // Without memory for the content, not reading it is better than refusing the request.
        let hasContent = content.kept.map { $0.count > 0 } ?? false
        return hasContent || !context.shared.hasRoomAhead(for: RequestContent.leastRoom) ? .nothing : .little
    }

    /// Takes a piece of content from the client. If no more is read ahead, the request may be answered before this
    /// returns.
    /// - Returns: false if no more content can be taken at the moment.
    func receive(content: Span<UInt8>) -> Bool {
        if state == .gathering {
            if gather(content) { return true }
            endGathering()
            look()
        }
        guard let unsharedFetch else { return true }
        guard unsharedFetch.hasBegun else {
            if !keptContent().append(content, reservingOf: context.shared) { contentFoundNoMemory() }
            return true
        }
        // Once the response was delivered, the rest of the content is read and dropped.
        let goesOn = unsharedFetch.exchange?.send(content) ?? true
        self.content.isClientPaused = !goesOn
        return goesOn
    }

    /// Ends the content. Like `receive`, this may answer the request.
    func endContent(trailers: ByteSlice?) {
        if state == .gathering {
            keptContent().end(trailers: trailers)
            endGathering()
            look()
        } else if let unsharedFetch, unsharedFetch.hasBegun {
            unsharedFetch.exchange?.endContent(trailers: trailers)
        } else if unsharedFetch != nil {
            keptContent().end(trailers: trailers)
        }
    }

    func fetchTakesContent() {
        guard content.isClientPaused else { return }
        content.isClientPaused = false
        client.resumeContent()
    }
}

extension OutgoingContent {
    /// Adds a piece, in memory of the budget.
    /// - Returns: false, without a change, if there is no memory.
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
