import Bytes
import HTTPSemantics
import Libevent
import Storage

/// One response on its way to one client: its head, then its body as fast as the client takes it and the origin brings it.
///
/// Owned by the client's connection, confined to its loop. It writes when it is pumped and never waits.
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

    /// From so many bytes on, the kernel's queue is bounded (`Socket.boundSendQueue`): it takes less in one or two writes either way.
    static let largeBody = 256 << 10

    let framing: Framing
    /// Whether trailers are passed on: the client said `TE: trailers` (RFC 9110 §6.5.1).
    let passesTrailers: Bool
    private(set) var bodyBytesSent: UInt64 = 0
    private let beganLarge: Bool
    private var source: Source
    /// What follows `source`, the next one last.
    private var later: [Source]
    /// Head, chunk sizes and chunk ends that go before the next body byte. `nil` once the head is out, unless there are chunks.
    private var control: ByteBuffer?
    private var chunks = Chunks.none

    /// Which chunks have their sizes in `control` or behind it (RFC 9112 §7.1).
    ///
    /// ```
    /// none ─bytes→ open ─its bytes are out, and there are more→ open ─its bytes are out, and the body's end→ last;   none ─end→ last
    /// ```
    private enum Chunks {
        case none
        /// So many bytes of the latest chunk are not out yet.
        case open(left: Int)
        /// The last chunk, which is empty.
        case last

        /// The bytes of the latest chunk that are not out yet.
        var left: Int {
            switch self {
            case .none, .last: 0
            case .open(let left): left
            }
        }

        /// Writes the size of the next chunk.
        mutating func begin(_ length: Int, in control: ByteBuffer) {
            end(in: control)
            control.appendChunkHeader(length)
            self = .open(left: length)
        }

        /// Writes the last chunk, once.
        mutating func finish(trailers: ByteSlice?, in control: ByteBuffer) {
            if case .last = self { return }
            end(in: control)
            control.appendLastChunk(trailers: trailers)
            self = .last
        }

        private func end(in control: ByteBuffer) {
            if case .open = self { control.appendChunkEnd() }
        }

        mutating func account(_ count: Int) {
            if case .open(let left) = self { self = .open(left: left - count) }
        }
    }

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
    }

    deinit { detach() }

    /// Copies what is left of the head that it was made with, which was lent.
    func keepHead() {
        guard let head = control, !head.isEmpty || framing == .chunked else { control = nil; return }
        let rest = ByteBuffer(capacity: max(head.count, Self.controlCapacity))
        rest.append(head.span)
        control = rest
    }

    /// Room for a chunk's end and the next one's size.
    private static let controlCapacity = 32

    /// The body that is still arriving, if this follows one.
    var followed: GrowingBody? {
        if case .arriving(let body, _, _) = source { return body }
        return nil
    }

    /// Whether it is known to be large: it was all there, or so much has gone out already.
    var isLarge: Bool { beganLarge || bodyBytesSent >= Self.largeBody }

    /// Leaves the body: what only this client still needed is freed.
    func detach() {
        if case .arriving(let body, let cursor, _) = source { body.detach(cursor) }
        source = .none
        guard !later.isEmpty else { return }
        for case .arriving(let body, let cursor, _) in later { body.detach(cursor) }
        later = []
    }

    /// Writes as much as goes now.
    /// - Parameter sent: grows by the bytes that went.
    func pump(on socket: Socket, _ list: GatherList, sent: inout Int) -> Outcome {
        while true {
            list.removeAll()
            let end = prepare(list)
            let ofControl = control?.count ?? 0
            guard ofControl > 0 || !list.isEmpty else {
                switch end {
                case .more, .starved: return .starved
                case .complete:
                    guard let next = later.popLast() else { return .done }
                    if case .arriving(let body, let cursor, _) = source { body.detach(cursor) }
                    source = next
                    continue
                case .failed: return .cutOff
                }
            }
            let ofBody = list.byteCount
            let result = if ofControl > 0, let control { write(control, ofControl, list, to: socket) } else { socket.write(list) }
            switch result {
            case .wrote(let count):
                sent += count
                list.removeAll()
                // Where the outcome is certain, without looking again. What comes meanwhile is noticed by those who follow the body.
                if count == ofControl + ofBody, end == .complete, isLast {
                    bodyBytesSent += UInt64(ofBody)
                    return .done
                }
                account(count)
                if count < ofControl + ofBody { return .blocked }
                if end == .starved { return .starved }
            case .wouldBlock:
                list.removeAll()
                return .blocked
            case .failed:
                list.removeAll()
                return .peerGone
            }
        }
    }

    /// A small body goes into the same piece of memory as its head: the copy costs less than another vector for the kernel.
    private func write(_ control: ByteBuffer, _ count: Int, _ list: GatherList, to socket: Socket) -> WriteResult {
        guard list.byteCount <= Self.copiedBody, count + list.byteCount <= control.capacity else { return socket.write(control.span, list) }
        list.copy(to: control)
        defer { control.truncate(to: count) }
        return socket.write(control.span)
    }

    static let copiedBody = 2048

    /// Whether nothing comes after a source that was offered to its end: no other one, and no last chunk.
    private var isLast: Bool { later.isEmpty && framing != .chunked }

    /// How the body stands after what was put into the list.
    private enum End {
        /// Perhaps there is more already.
        case more
        /// That is all that has arrived.
        case starved
        case complete, failed
    }

    /// Puts what comes next into `control` and `list`, and tells how the body stands after that.
    private func prepare(_ list: GatherList) -> End {
        switch source {
        case .none:
            return .complete
        case .lost:
            return .failed
        case .packed(let response):
            return prepare(CompleteBodyReader(packed: response), list)
        case .complete(let reader):
            return prepare(reader, list)
        case .arriving(let body, var cursor, let part?):
            return list.withSlices { preparePart(part, of: body, &cursor, &$0, list) }
        case .arriving(let body, let cursor, nil):
            guard framing == .chunked else {
                let (phase, reachesEnd) = body.read(at: cursor, limit: GatherList.capacity / 2) { list.append($0) }
                return Self.end(phase, reachesEnd)
            }
            return list.withSlices { slices in
                let (phase, reachesEnd) = body.read(at: cursor, into: &slices, limit: GatherList.capacity / 2)
                return prepareChunk(slices, list, phase, reachesEnd, body)
            }
        }
    }

    /// Its length is known, so it is never sent in chunks.
    private func prepare(_ reader: CompleteBodyReader, _ list: GatherList) -> End {
        reader.gather(into: list)
        return list.byteCount == reader.remaining ? .complete : .more
    }

    /// Steps over what stands before the part, then offers the part as far as it is there.
    private func preparePart(
        _ part: Range<Int>, of body: GrowingBody, _ cursor: inout GrowingBody.Cursor, _ slices: inout [ByteSlice], _ list: GatherList
    ) -> End {
        while true {
            slices.removeAll(keepingCapacity: true)
            let (phase, reachesEnd) = body.read(at: cursor, into: &slices, limit: GatherList.capacity / 2)
            let available = slices.reduce(0) { $0 + $1.count }
            let ahead = min(available, part.lowerBound - cursor.offset)
            if ahead > 0 {
                body.advance(&cursor, by: ahead)
                source = .arriving(body, cursor, part: part)
                continue
            }
            var left = cursor.offset >= part.lowerBound ? part.upperBound - cursor.offset : 0
            if cursor.offset >= part.upperBound { return .complete }
            for slice in slices where left > 0 {
                let piece = min(left, slice.count)
                list.append(slice[0..<piece])
                left -= piece
            }
            let end = Self.end(phase, reachesEnd)
            // The part may be all there, though the body goes on.
            return left == 0 && end == .starved ? .more : end
        }
    }

    private func prepareChunk(
        _ slices: [ByteSlice], _ list: GatherList, _ phase: GrowingBody.Phase, _ reachesEnd: Bool, _ body: GrowingBody
    ) -> End {
        let control = control ?? ByteBuffer(capacity: Self.controlCapacity)
        self.control = control
        let available = slices.reduce(0) { $0 + $1.count }
        if chunks.left == 0 {
            if available > 0 {
                chunks.begin(available, in: control)
            } else if phase == .complete, reachesEnd {
                chunks.finish(trailers: passesTrailers ? body.trailers : nil, in: control)
                return .complete
            }
        }
        // A piece may have grown since the chunk's size was written: what is more belongs to the next chunk.
        var left = chunks.left
        for slice in slices where left > 0 {
            let part = min(left, slice.count)
            list.append(slice[0..<part])
            left -= part
        }
        return phase == .failed && reachesEnd ? .failed : .more
    }

    private static func end(_ phase: GrowingBody.Phase, _ reachesEnd: Bool) -> End {
        guard reachesEnd else { return .more }
        switch phase {
        case .open: return .starved
        case .complete: return .complete
        case .failed: return .failed
        }
    }

    /// The first `count` bytes of it are out.
    func account(_ count: Int) {
        let ofControl = min(count, control?.count ?? 0)
        control?.consume(ofControl)
        let ofBody = count - ofControl
        guard ofBody > 0 else { return }
        bodyBytesSent += UInt64(ofBody)
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
            body.advance(&cursor, by: ofBody)
            source = .arriving(body, cursor, part: part)
            chunks.account(ofBody)
        }
    }
}
