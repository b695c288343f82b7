package import Bytes

/// Reads the stream of one fetch, entry by entry, and sees to it that nobody gets a body with a gap.
///
/// ```
/// head ─h→ content ─d→ content
///             ├─e, with the length so far→ complete
///             └─a gap, a wrong length, a wrong seal, anything else→ refused
/// ```
///
/// Used for the body of a hit and for one that grows. A value without I/O.
package struct TierReader: Sendable {
    package enum State: Hashable, Sendable {
        /// The head has not come.
        case head
        case content
        case complete
        case refused(TierRefusal)
    }

    /// The news in one entry.
    package enum Piece: Hashable, Sendable {
        /// The record, and when it was written, in the engine's milliseconds.
        case head(ByteSlice, at: Int64)
        /// The next bytes of the body.
        case content(ByteSlice)
        /// The body is complete; its trailers as lines, mostly none.
        case end(trailers: ByteSlice)
    }

    /// Whether more of the response is to come.
    package var isOpen: Bool {
        switch state {
        case .head, .content: true
        case .complete, .refused: false
        }
    }

    package let token: ByteSlice
    private let seal: TierSeal?
    package private(set) var state = State.head
    /// The bytes of content so far.
    package private(set) var length = 0
    /// The length that the record announces; content beyond it is refused.
    package var announced: Int?
    private var lastID = ByteSlice("0-0")

    /// - Parameter seal: without it, the reader believes each entry.
    package init(_ token: ByteSlice, seal: TierSeal? = nil) {
        self.token = token
        self.seal = seal
    }

    /// Asks for the entries after the last one, and to be told when there are more, even if there is no stream yet.
    package func command(_ keys: TierKeys, most: Int = TierNumbers.entriesAtOnce) -> TierCommand {
        let from = ByteBuffer(capacity: 48)
        from.append("(")
        from.append(lastID)
        return TierCommand(
            "XRANGE", [.key(keys.stream(token)), .bytes(from.copied()), .of("+"), .of("COUNT"), .number(most)])
    }

    /// Asks for the token in the lease, and to be told when it changes. Sent before `command`: if the lease is lost, the
    /// leader adds no entry behind those that `command` then brings.
    package static func lease(_ keys: TierKeys, _ variant: ByteSlice) -> TierCommand {
        TierCommand("GET", [.key(keys.lease(variant))])
    }

    /// Whether the reply to `lease` says that this token still leads.
    package func leads(_ reply: TierValue) throws(TierReplyError) -> Bool {
        if case .none = reply { return false }
        return try reply.text() == token
    }

    /// Reads the reply to `command`, or the entries that came with a hit.
    /// - Returns: a piece for each entry. No entry: no news, or no stream.
    package mutating func read(_ reply: TierValue) throws(TierReplyError) -> [Piece] {
        var pieces: [Piece] = []
        for entry in try reply.list() {
            let (id, fields) = try TierFields.read(entry)
            do throws(TierRefusal) {
                pieces.append(try take(id, fields))
                lastID = id
            } catch {
                state = .refused(error)
                break
            }
        }
        return pieces
    }

    private mutating func take(_ id: ByteSlice, _ fields: TierFields) throws(TierRefusal) -> Piece {
        let mark = fields["s"] ?? .empty
        switch state {
        case .head:
            guard id.span.isEqual(to: TierEntryID.head), let record = fields["h"],
                let at = fields["t"].flatMap({ Int64(String($0)) }), 0...TierNumbers.greatest ~= at
            else { throw .noHead }
            state = .content
            return .head(record, at: at)
        case .content:
            if id.span.isEqual(to: TierEntryID.closing) { return try close(fields, mark) }
            guard let bytes = fields["d"], !bytes.isEmpty else { throw .unknownEntry }
            guard id == TierEntryID(at: length).text else { throw .gap }
            guard announced.map({ bytes.count <= $0 - length }) ?? true else { throw .length }
            if let seal, seal.content(bytes, at: length, under: token) != mark { throw .seal }
            length += bytes.count
            return .content(bytes)
        case .complete: throw .unknownEntry
        case .refused(let reason): throw reason
        }
    }

    private mutating func close(_ fields: TierFields, _ mark: ByteSlice) throws(TierRefusal) -> Piece {
        guard let total = fields["e"].flatMap({ Int(String($0)) }), let trailers = fields["t"] else {
            throw .unknownEntry
        }
        guard total == length else { throw .gap }
        guard announced == nil || announced == total else { throw .length }
        if let seal, seal.end(trailers, at: length, under: token) != mark { throw .seal }
        let judged = try TierTrailers.read(trailers)
        state = .complete
        return .end(trailers: judged)
    }
}
