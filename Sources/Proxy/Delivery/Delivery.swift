import Bytes
import Libevent
import Storage

/// Sends one response to one client: its head, then its body as fast as the client takes it and the origin sends it.
///
/// Owned by the client's connection, confined to its loop. `pump` writes and never waits. The kernel may stop at any
/// byte, so gathering bytes (`prepare`) and accounting for sent ones (`account`) are two steps.
///
/// ```
/// prepare ─something to send→ write ─all bytes sent→ account ─→ prepare
///    │                          ├─some or none sent→ account ─→ blocked
///    │                          └─the connection is broken→ peerGone
///    └─no bytes to send→ the source's end: prepare the next source; or done, starved, cutOff
/// ```
final class Delivery {
    enum Outcome: Equatable {
        case done
        /// The kernel is full: pump again when the socket is writable.
        case blocked
        /// All bytes that have arrived are sent: pump again when the body grows.
        case starved
        /// The body was cut off upstream: end the connection so that the client sees it.
        case cutOff
        case peerGone
    }

    /// From this body size on, in bytes, the kernel's send queue is bounded (`Socket.boundSendQueue`). Smaller bodies
    /// fit into one or two writes with or without the bound.
    static let largeBody = 256 << 10

    let framing: Framing
    /// Whether trailers are passed on: the request has `TE: trailers` (RFC 9110 §6.5.1).
    let passesTrailers: Bool
    private(set) var bodyBytesSent: UInt64 = 0
    /// When the client must have taken a byte, if it is also checked for holding up others before that; nanoseconds of
    /// the loop's clock.
    var isDueBy: Int64 = 0
    private let beganLarge: Bool
    var source: Source
    /// The sources after `source`, in reverse order.
    private var later: [Source]
    /// The unsent part of the head, and the size line of the chunk before the next body byte. `nil` once the head is
    /// sent, unless the body is chunked.
    var control: ByteBuffer?
    var chunks = Chunks.between

    /// - Parameter head: status line, fields and the empty line; `nil` in HTTP/2, whose frames the session makes.
    init(head: ByteBuffer?, _ sources: consuming Sources, framing: Framing, passesTrailers: Bool = false) {
        control = head
        switch consume sources {
        case .one(let only):
            source = only
            later = []
        case .packed(let response):
            let pieces = response.pieces ?? ShortList()
            source = .complete(CompleteBodyReader(pieces, part: 0..<(response.bodyLength ?? 0)))
            later = []
        case .row(let row):
            source = row.first ?? .none
            later = row.dropFirst().reversed()
        }
        beganLarge = if case .complete(let reader) = source { reader.remaining >= Self.largeBody } else { false }
        self.framing = framing
        self.passesTrailers = passesTrailers
        source.begin()
        for other in later { other.begin() }
    }

    deinit { detach() }

    /// Copies the unsent part of the head: the buffer given to `init` is `LoopContext.scratch`.
    func keepHead() {
        guard let head = control, !head.isEmpty || framing == .chunked else { control = nil; return }
        let rest = ByteBuffer(capacity: max(head.count, Self.controlCapacity))
        rest.append(head.span)
        control = rest
    }

    /// Room for a chunk's size.
    static let controlCapacity = 32

    /// The body that is still arriving, if `source` is one.
    var followed: GrowingBody? {
        if case .arriving(let body, _, _) = source { return body }
        return nil
    }

    /// Whether there is a body, perhaps an empty one.
    var hasContent: Bool {
        if case .none = source { hasLater } else { true }
    }

    var hasLater: Bool { !later.isEmpty }

    /// Goes on to the next source, once all of this one is taken.
    /// - Returns: whether there is one.
    func goOn() -> Bool {
        guard let next = later.popLast() else { return false }
        source.end()
        source = next
        return true
    }

    /// Whether this delivery may hold up other readers of a body: one of its sources is still arriving.
    var mayHoldUpOthers: Bool { source.isArriving || later.contains { $0.isArriving } }

    /// Whether this delivery has held up other readers for too long. Asked while its client's socket is not writable.
    func hasHeldUpOthers(at now: Int64, _ bound: HoldUpBound) -> Bool {
        source.isHeldUpTooLong(at: now, bound) || later.contains { $0.isHeldUpTooLong(at: now, bound) }
    }

    /// Whether the body is known to be large: it was complete at the start, or `largeBody` bytes of it are sent.
    var isLarge: Bool { beganLarge || bodyBytesSent >= Self.largeBody }

    /// Leaves the body. Bytes that only this client still needed are freed.
    func detach() {
        source.end()
        source = .none
        guard !later.isEmpty else { return }
        for other in later { other.end() }
        later = []
    }

    /// Writes as much as the kernel takes now.
    /// - Parameter sent: grows by the bytes that were sent.
    func pump(on socket: Socket, _ list: GatherList, sent: inout Int) -> Outcome {
        pump(list, sent: &sent) { control in
            if let control { socket.write(control, then: list) } else { socket.write(list) }
        }
    }

    /// - Parameter write: writes these bytes, if any, and then those in `list`, to the socket.
    @inline(__always)
    func pump(_ list: GatherList, sent: inout Int, write: (ByteBuffer?) -> WriteResult) -> Outcome {
        while true {
            list.removeAll()
            let end = prepare(list)
            let ofControl = control?.count ?? 0
            guard ofControl > 0 || !list.isEmpty else {
                switch end {
                case .more, .starved: return .starved
                case .complete:
                    guard let next = later.popLast() else { return .done }
                    source.end()
                    source = next
                    continue
                case .failed: return .cutOff
                }
            }
            let ofBody = list.byteCount
            let result = write(ofControl > 0 ? control : nil)
            list.removeAll()
            switch result {
            case .wrote(let count):
                sent += count
                // Return without another `prepare` if the outcome is certain. The clients that follow the body
                // (`StarvedClients`) are notified of bytes that arrive meanwhile.
                if count == ofControl + ofBody, end == .complete, later.isEmpty {
                    bodyBytesSent += UInt64(framing == .chunked ? chunks.contentLeft : ofBody)
                    return .done
                }
                account(count)
                if count < ofControl + ofBody { return .blocked }
                if end == .starved { return .starved }
            case .wouldBlock:
                return .blocked
            case .failed:
                return .peerGone
            }
        }
    }

    /// Up to this size, in bytes, a body is copied behind its head: the copy costs less than another vector for the
    /// kernel.
    static let copiedBody = 2048

    /// Accounts for the first `count` gathered bytes, which are sent.
    func account(_ count: Int) {
        let ofControl = min(count, control?.count ?? 0)
        control?.consume(ofControl)
        let ofBody = count - ofControl
        guard ofBody > 0 else { return }
        if framing != .chunked { bodyBytesSent += UInt64(ofBody) }
        switch source {
        case .none, .lost:
            break
        case .complete(var reader):
            reader.advance(by: ofBody)
            source = .complete(reader)
        case .arriving(let body, var cursor, let part):
            var ofContent = ofBody
            if framing == .chunked {
                ofContent = chunks.account(ofBody, trailers: trailers(of: body))
                bodyBytesSent += UInt64(ofContent)
            }
            body.advance(&cursor, by: ofContent)
            source = .arriving(body, cursor, part: part)
        }
    }
}

extension Socket {
    /// Writes a response, or the next bytes of one: `head` from `start` on, then the pieces of `list`. `head` and
    /// `list` are unchanged.
    func write(_ head: ByteBuffer, from start: Int = 0, then list: GatherList) -> WriteResult {
        let count = head.count
        guard list.byteCount <= Delivery.copiedBody, count + list.byteCount <= head.capacity else {
            return write(head.span.extracting(start..<count), list)
        }
        list.copy(to: head)
        defer { head.truncate(to: count) }
        return write(head.span.extracting(start..<head.count))
    }
}
