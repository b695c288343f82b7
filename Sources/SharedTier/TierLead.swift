package import Bytes

/// The machine that leads a fetch. It writes a stream of its own to the engine, then a record. Its commands are sent in
/// the order in which they are made, and may be sent without waiting for replies.
///
/// ```
/// asking ─head→ streaming ─finish→ over
///    ├─freshen, unshare, release→ over
///                  └─release, the lease or the stream is lost→ over
/// ```
///
/// The lease makes it likely that one machine fetches. That only one writes does not hang on it: each leader has a
/// stream of its own, and the function that makes a record of it compares the token.
package struct TierLead: Hashable, Sendable {
    package let keys: TierKeys
    package let variant: ByteSlice
    package let token: ByteSlice
    /// The length of the lease in milliseconds. The leader renews it when a third is over.
    package let lease: Int
    private let seal: TierSeal?
    /// The entries of the stream so far.
    private var entries = 0
    /// The bytes of content so far.
    package private(set) var length = 0

    package init(_ keys: TierKeys, variant: ByteSlice, token: ByteSlice, lease: Int, seal: TierSeal? = nil) {
        self.keys = keys
        self.variant = variant
        self.token = token
        self.lease = lease
        self.seal = seal
    }

    /// How a response is kept.
    package struct Keeping: Hashable, Sendable {
        /// The latest `Vary`, in a form that the machines agree on; empty: none.
        package var vary = ByteSlice.empty
        /// The variant under that `vary`.
        package var variant = ByteSlice.empty
        /// Milliseconds from the head on for which the response is fresh.
        package var fresh = 0
        /// Milliseconds from the head on for which it may be of use, stale or not; 0: it is not kept.
        package var lifetime = 0

        package init() {}
    }

    /// The head has come. Reply: a `TierOutcome`.
    /// - Parameter record: from `TierRecord.write`.
    package mutating func head(_ record: ByteSlice) -> TierCommand {
        precondition(entries == 0, "a second head")
        entries = 1
        return call("co1_head", [.bytes(token), .bytes(record), .number(lease)])
    }

    /// Content has come: at least one byte, at most `TierNumbers.entryLength`. Reply: a `TierOutcome`, by
    /// `init(ofEntry:)`.
    package mutating func content(_ bytes: ByteSlice) -> TierCommand {
        precondition(entries > 0 && !bytes.isEmpty, "content before the head, or none")
        let id = TierEntryID(at: length).text
        let mark = seal?.content(bytes, at: length, under: token) ?? .empty
        entries += 1
        length += bytes.count
        return TierCommand(
            "XADD",
            [
                .key(keys.stream(token)), .of("NOMKSTREAM"), .bytes(id), .of("d"), .bytes(bytes), .of("s"),
                .bytes(mark),
            ])
    }

    /// The leader is alive. Reply: a `TierOutcome`.
    package var renewal: TierCommand { call("co1_renew", [.bytes(token), .number(lease)]) }

    /// The response is complete. Reply: a `TierOutcome`.
    package func finish(trailers: ByteSlice = .empty, _ keeping: Keeping) -> TierCommand {
        TierCommand(
            function: "co1_finish", keys: [keys.resource, keys.lease(variant), keys.stream(token)],
            [
                .bytes(token), .number(entries), .number(length), .bytes(trailers), .bytes(keeping.vary),
                .bytes(keeping.variant), .number(keeping.fresh), .number(keeping.lifetime), .number(lease),
                .bytes(seal?.end(trailers, at: length, under: token) ?? .empty),
            ])
    }

    /// A 304 has confirmed the stored response of this variant. Reply: a `TierOutcome`.
    /// - Parameters:
    ///   - stored: the token of the stored response.
    ///   - record: from `TierRecord.write`, sealed for `stored`.
    package func freshen(_ stored: ByteSlice, with record: ByteSlice, fresh: Int, lifetime: Int) -> TierCommand {
        TierCommand(
            function: "co1_freshen", keys: [keys.resource, keys.lease(variant)],
            [
                .bytes(token), .bytes(variant), .bytes(stored), .bytes(record), .number(fresh), .number(lifetime),
                .number(lease),
            ])
    }

    /// The other machines do without this response. Reply: a `TierOutcome`.
    /// - Parameters:
    ///   - milliseconds: how long nobody waits for such a response.
    ///   - isForOne: whether it is for no other request, and probably the next ones neither; `false`: each machine may
    ///     fetch it once for its own clients.
    package func unshare(for milliseconds: Int, isForOne: Bool) -> TierCommand {
        TierCommand(
            function: "co1_unshare", keys: [keys.lease(variant)],
            [.bytes(token), .number(milliseconds), .of(isForOne ? "--" : "-")])
    }

    /// The fetch ends without a response for others. Reply: a `TierOutcome`.
    package var release: TierCommand { call("co1_release", [.bytes(token), .number(lease)]) }

    private func call(_ function: StaticString, _ rest: [TierCommand.Argument]) -> TierCommand {
        TierCommand(function: function, keys: [keys.lease(variant), keys.stream(token)], rest)
    }
}

/// How a leader's command ended.
package enum TierOutcome: Hashable, Sendable {
    case done
    /// The lease ended, or another machine took it over. Nobody reads the stream of this leader any more.
    case leaseLost
    /// The engine evicted the stream, or has lost a part of it. The leader releases the lease, if the function has not.
    case streamLost

    /// Reads the reply of a function.
    package init(_ reply: TierValue) throws(TierReplyError) {
        switch try reply.integer() {
        case 1: self = .done
        case 0: self = .leaseLost
        case -1: self = .streamLost
        default: throw .malformed
        }
    }

    /// Reads the reply to an entry of the stream.
    package init(ofEntry reply: TierValue) throws(TierReplyError) {
        if case .none = reply { self = .streamLost; return }
        _ = try reply.text()
        self = .done
    }
}
