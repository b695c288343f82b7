package import Bytes

/// The question of one machine for one variant of a resource. One call answers it, and makes the machine the leader if
/// nobody else is.
package struct TierLookUp: Hashable, Sendable {
    package let keys: TierKeys
    /// The latest `Vary` that this machine knows, in the form that `finish` gets; empty: none.
    package var vary = ByteSlice.empty
    /// The variant under `vary` (`TierKeys.variant(of:)`).
    package var variant = ByteSlice.empty
    /// The token under which to lead; `nil`: this machine does not fetch.
    package var token: ByteSlice?
    /// A token that is known to be broken: its lease is taken over, and its record is dropped.
    package var broken = ByteSlice.empty
    /// The token of a record that counts as stale for this request.
    package var stale = ByteSlice.empty

    package init(_ keys: TierKeys) { self.keys = keys }

    /// - Parameter lease: in milliseconds.
    package func command(lease: Int, inlineLength: Int = TierNumbers.inlineLength) -> TierCommand {
        TierCommand(
            function: "co1_look", keys: [keys.resource, keys.lease(variant)],
            [
                .bytes(vary), .bytes(variant), .bytes(token ?? .empty), .number(lease), .bytes(broken), .bytes(stale),
                .number(inlineLength),
            ])
    }
}

/// The engine's answer to a look-up.
package struct TierAnswer: Hashable, Sendable {
    package enum Verdict: Hashable, Sendable {
        /// The variant was computed from another `Vary` than this, the latest. The machine asks again.
        case vary(ByteSlice)
        /// `stored` is fresh.
        case hit
        /// Another machine fetches under this token; its lease ends in so many milliseconds.
        case join(token: ByteSlice, left: Int64)
        /// This machine fetches; it has the lease for so many milliseconds.
        case lead(left: Int64)
        /// For so many milliseconds nobody waits for another machine. `isForOne`: nor for another request.
        case alone(left: Int64, isForOne: Bool)
        /// There is nothing, and this machine does not fetch.
        case miss
    }

    package let verdict: Verdict
    /// The engine's time of the answer, in milliseconds.
    package let now: Int64
    /// The stored response: fresh with the verdict `hit`, otherwise stale.
    package let stored: TierStored?

    /// Reads the reply to a look-up.
    package init(_ reply: TierValue) throws(TierReplyError) {
        let values = try reply.list()
        guard values.count == 4 || values.count == 5 else { throw .malformed }
        let (word, token, left) = (try values[0].text(), try values[1].text(), try values[2].amount())
        now = try values[3].amount()
        stored = values.count == 5 ? try TierStored(values[4]) : nil
        verdict =
            switch String(word) {
            case "vary": .vary(token)
            case "hit": .hit
            case "join": .join(token: token, left: left)
            case "lead": .lead(left: left)
            case "alone": .alone(left: left, isForOne: token.span.isEqual(to: "--"))
            case "miss": .miss
            default: throw .malformed
            }
        if verdict == .hit, stored == nil { throw .malformed }
        if case .join(let leader, _) = verdict, !TierTokens.isToken(leader.span) { throw .malformed }
    }
}

/// A complete response in the engine. All times are the engine's, in milliseconds.
package struct TierStored: Hashable, Sendable {
    /// Names its stream.
    package let token: ByteSlice
    /// The length of the body in bytes.
    package let length: Int64
    /// When its head came, or a 304 confirmed it: the record's age is counted from here.
    package let at: Int64
    /// When it becomes stale, by the leader's rules.
    package let freshUntil: Int64
    /// When the engine drops it.
    package let expires: Int64
    /// The record after a 304, which replaces the one in the stream.
    package let freshened: ByteSlice?
    /// The whole stream of a small body; otherwise the head alone.
    package let entries: TierValue

    init(_ value: TierValue) throws(TierReplyError) {
        let values = try value.list()
        guard values.count == 7 else { throw .malformed }
        let named = try values[0].text()
        guard TierTokens.isToken(named.span) else { throw .malformed }
        token = named
        length = try values[1].amount()
        at = try values[2].amount()
        freshUntil = try values[3].amount()
        expires = try values[4].amount()
        let head = try values[5].text()
        freshened = head.isEmpty ? nil : head
        entries = values[6]
    }
}
