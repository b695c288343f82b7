import Bytes
import HTTPSemantics
import Routing
import Telemetry
import Upstream

/// A request's content on its way from its client's connection to its fetch. Small content is read ahead: the request
/// takes no slot, and reaches no origin, while its client sends it.
///
/// Owned by its transaction until that leaves, confined to its loop.
///
/// ```
/// ahead ─complete, too large, no memory for it→ the request is looked up: flowing
/// flowing ─the fetch has no slot yet, or holds enough→ paused ─it has sent what it holds→ flowing
/// ```
final class RequestContent {
    /// How the client's connection goes on once all content received has been taken.
    enum Wanted {
        /// Reading goes on, and the client must send more within the timeout for content.
        case more
        /// A little more is read if it comes, also to notice that the client leaves; but there is no timeout.
        case little
        /// Reading stops until `TransactionClient.resumeContent`, without a timeout.
        case nothing
    }

    /// Bytes of content that one read brings into a buffer for heads.
    static let leastRoom = 16 << 10
    /// RFC 9110 §15.2.1.
    private static let goOn = ByteSlice("HTTP/1.1 100 Continue\r\n\r\n")

    private let transaction: Transaction
    private let context: LoopContext
    /// Whether the content is read ahead, and the request not yet looked up.
    private var isAhead = false
    /// The content that came before its fetch got a slot: read ahead, or received since. Held in memory of the budget.
    private var kept: OutgoingContent?
    /// Whether reading is paused until the fetch has sent the content that it holds.
    private var isPaused = false

    init(of transaction: Transaction) {
        self.transaction = transaction
        context = transaction.context
    }

    /// Reads the content ahead, if it may be small.
    /// - Returns: false if the request is to be looked up at once.
    func beginAhead() -> Bool {
        guard mayBeSmall else { return false }
        isAhead = true
        _ = buffer()
        transaction.provenance.verdict = .pass
        // The origin, which has not got the request yet, cannot send the 100.
        if transaction.request.awaitsContinue { transaction.client.send(interim: Self.goOn) }
        return true
    }

    /// Content known to be large is not read ahead: its client may send the rest as slowly as it likes after any
    /// beginning, and streamed content is copied nowhere. Nor is content whose client asks for incremental forwarding
    /// (RFC 10036).
    private var mayBeSmall: Bool {
        let fields = transaction.request.fields
        if fields.view.asksForIncrementalForwarding { return false }
        let most = context.settings.clients.bodyBuffer
        return switch transaction.request.head.framing {
        case .length(let length): length <= UInt64(most) && context.shared.hasRoomAhead(for: Int(length))
        case .chunked: most > 0 && context.shared.hasRoomAhead(for: 0)
        case .none, .untilClose: false
        }
    }

    /// Keeps a piece that is read ahead.
    /// - Returns: false if the content is too large, or there is no memory for it.
    private func keep(_ piece: Span<UInt8>) -> Bool {
        let kept = buffer()
        return kept.count + piece.count <= context.settings.clients.bodyBuffer
            && kept.append(piece, reservingOf: context.shared)
    }

    /// The buffer for content that comes before the fetch has its slot; made when the first content comes.
    private func buffer() -> OutgoingContent {
        let kept = kept ?? OutgoingContent(UpstreamRequest.Content(transaction.request.head.framing))
        self.kept = kept
        return kept
    }

    private func endAhead() {
        isAhead = false
        transaction.look()
    }

    var isKept: Bool { kept != nil }

    /// Takes the content that is kept, for the fetch that sends it.
    func take() -> OutgoingContent? { kept.take() }

    // MARK: Calls of the client's connection

    /// Whether a piece may be as large as one read of content. Content that must be kept is read in small pieces:
    /// before a fetch has its slot, and if the next piece may show that the content is too large to be read ahead. Ten
    /// thousand uploads may wait for slots, and would hold 2.5 GiB in large pieces. Some bytes are read even then:
    /// otherwise a client that leaves is not noticed, and takes a slot.
    var takesLargePieces: Bool {
        isAhead ? transaction.request.head.framing != .chunked : transaction.unsharedFetch?.hasBegun ?? true
    }

    /// All content received has been taken. Returns how to go on; unless that is `more`,
    /// `TransactionClient.resumeContent` follows.
    func wanted() -> Wanted {
        guard let fetch = transaction.unsharedFetch, !fetch.hasBegun else { return .more }
        isPaused = true
        // Without memory for the content, not reading it is better than refusing the request.
        let hasContent = kept.map { $0.count > 0 } ?? false
        return hasContent || !context.shared.hasRoomAhead(for: Self.leastRoom) ? .nothing : .little
    }

    /// Takes a piece of content from the client. If no more is read ahead, the request may be answered before this
    /// returns.
    /// - Returns: false if no more content can be taken at the moment.
    func receive(_ piece: Span<UInt8>) -> Bool {
        if isAhead {
            if keep(piece) { return true }
            endAhead()
        }
        guard let fetch = transaction.unsharedFetch else { return true }
        guard fetch.hasBegun else {
            // Content that comes before the fetch has a slot, and cannot be kept, ends the wait.
            if !buffer().append(piece, reservingOf: context.shared), transaction.stopWaiting() {
                transaction.meets(.memory)
            }
            return true
        }
        // Once the response was delivered, the rest of the content is read and dropped.
        let goesOn = fetch.exchange?.send(piece) ?? true
        isPaused = !goesOn
        return goesOn
    }

    /// Ends the content. Like `receive`, this may answer the request.
    func end(trailers: ByteSlice?) {
        let rules = transaction.request.route.requestFields
        let trailers = rules.map { rules in trailers.flatMap { rules.remaining(of: $0) } } ?? trailers
        if let fetch = transaction.unsharedFetch, fetch.hasBegun {
            fetch.exchange?.endContent(trailers: trailers)
        } else if isAhead || transaction.unsharedFetch != nil {
            buffer().end(trailers: trailers)
            if isAhead { endAhead() }
        }
    }

    // MARK: Calls of the fetch

    /// The fetch has sent the content that it held.
    func resume() {
        guard isPaused else { return }
        isPaused = false
        transaction.client.resumeContent()
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
