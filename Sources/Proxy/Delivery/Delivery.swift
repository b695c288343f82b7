import Bytes
import Libevent
import Storage

/// One response on its way to one client: its head, then its body as fast as the client takes it and the origin brings
/// it.
///
/// Owned by the client's connection, confined to its loop. It writes when it is pumped and never waits. The kernel may
/// stop at any byte: what is offered and what of it went are two steps.
///
/// ```
/// prepare ─something to send→ write ─all of it went→ account ─→ prepare
///    │                          ├─some or nothing went→ account ─→ blocked
///    │                          └─the connection is broken→ peerGone
///    └─nothing to send→ the source's end: prepare the next source; or done, starved, cutOff
/// ```
final class Delivery {
    enum Outcome: Equatable {
        case done
        /// The kernel is full: pump again when the socket is writable.
        case blocked
        /// All that has arrived is sent: pump again when the body grows.
        case starved
        /// The body was cut off upstream: end the connection so that the client sees it.
        case cutOff
        case peerGone
    }

    /// From so many bytes on, the kernel's queue is bounded (`Socket.boundSendQueue`): it takes less in one or two
    /// writes either way.
    static let largeBody = 256 << 10

    let framing: Framing
    /// Whether trailers are passed on: the client said `TE: trailers` (RFC 9110 §6.5.1).
    let passesTrailers: Bool
    private(set) var bodyBytesSent: UInt64 = 0
    /// By when the client must take a byte, where it is looked at before as well; in nanoseconds of the loop's clock.
    var isDueBy: Int64 = 0
    private let beganLarge: Bool
    var source: Source
    /// What follows `source`, the next one last.
    private var later: [Source]
    /// The head, or what is left of it, and the size of the chunk that goes before the next body byte. `nil` once the head
    /// is out, unless there are chunks.
    var control: ByteBuffer?
    var chunks = Chunks.between

    /// - Parameter head: status line, fields and the empty line.
    init(head: ByteBuffer, _ sources: consuming Sources, framing: Framing, passesTrailers: Bool = false) {
        control = head
        switch consume sources {
        case .one(let only):
            source = only
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

    /// Copies what is left of the head that it was made with, which was lent.
    func keepHead() {
        guard let head = control, !head.isEmpty || framing == .chunked else { control = nil; return }
        let rest = ByteBuffer(capacity: max(head.count, Self.controlCapacity))
        rest.append(head.span)
        control = rest
    }

    /// Room for a chunk's size.
    static let controlCapacity = 32

    /// The body that is still arriving, if this follows one.
    var followed: GrowingBody? {
        if case .arriving(let body, _, _) = source { return body }
        return nil
    }

    /// Whether it may hold up others: it follows a body, or will once what stands before that is out.
    var mayHoldUpOthers: Bool { source.isArriving || later.contains { $0.isArriving } }

    /// Whether it has kept others waiting for too long. For one whose client takes no more for now.
    func hasHeldUpOthers(at now: Int64, _ bound: HoldUpBound) -> Bool {
        source.isHeldUpTooLong(at: now, bound) || later.contains { $0.isHeldUpTooLong(at: now, bound) }
    }

    /// Whether it is known to be large: it was all there, or so much has gone out already.
    var isLarge: Bool { beganLarge || bodyBytesSent >= Self.largeBody }

    /// Leaves the body: what only this client still needed is freed.
    func detach() {
        source.end()
        source = .none
        guard !later.isEmpty else { return }
        for other in later { other.end() }
        later = []
    }

    /// Writes as much as goes now.
    /// - Parameter sent: grows by the bytes that went.
    func pump(on socket: Socket, _ list: GatherList, sent: inout Int) -> Outcome {
        pump(list, sent: &sent) { control in
            if let control { Self.write(control, list, to: socket) } else { socket.write(list) }
        }
    }

    /// - Parameter write: gives the kernel these bytes, if any, and what is in the list behind them.
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
                // Where the outcome is certain, without looking again. What comes meanwhile is noticed by those who
                // follow the body.
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

    /// A small body goes into the same piece of memory as its head: the copy costs less than another vector for the
    /// kernel.
    private static func write(_ control: ByteBuffer, _ list: GatherList, to socket: Socket) -> WriteResult {
        let count = control.count
        guard list.byteCount <= copiedBody, count + list.byteCount <= control.capacity else {
            return socket.write(control.span, list)
        }
        list.copy(to: control)
        defer { control.truncate(to: count) }
        return socket.write(control.span)
    }

    static let copiedBody = 2048

    /// The first `count` bytes of what was prepared are out.
    func account(_ count: Int) {
        let ofControl = min(count, control?.count ?? 0)
        control?.consume(ofControl)
        let ofBody = count - ofControl
        guard ofBody > 0 else { return }
        if framing != .chunked { bodyBytesSent += UInt64(ofBody) }
        switch source {
        case .none, .lost:
            break
        case .packed(let response):
            var reader = CompleteBodyReader(packed: response)
            reader.advance(by: ofBody)
            source = .complete(reader)
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
