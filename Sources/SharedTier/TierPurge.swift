package import Bytes

/// One purge in the log that all machines read.
package struct TierPurge: Hashable, Sendable {
    package enum Kind: String, Hashable, Sendable, CaseIterable {
        case url, prefix, tag, group, everything
    }

    package let kind: Kind
    /// The bytes of the key or of its beginning, the tag, or the group; empty for everything.
    package let value: ByteSlice
    /// Whether the responses become stale, rather than unusable.
    package let isSoft: Bool

    package init(_ kind: Kind, _ value: ByteSlice, isSoft: Bool) {
        self.kind = kind
        self.value = value
        self.isSoft = isSoft
    }

    /// Appends the purge to the log. Reply: its id.
    package func command(log: ByteSlice, kept: Int = TierNumbers.purgesKept) -> TierCommand {
        TierCommand(
            function: "co1_purge", keys: [log],
            [.bytes(ByteSlice(kind.rawValue)), .bytes(value), .number(isSoft ? 1 : 0), .number(kept)])
    }

    /// Drops the records of one resource, in addition to the purge of its URL. Reply: of no interest.
    package static func drop(_ keys: TierKeys) -> TierCommand { TierCommand("UNLINK", [.key(keys.resource)]) }
}

/// The id of a purge: the order of the log.
package struct TierPurgeID: Hashable, Sendable, Comparable {
    package let milliseconds: UInt64
    package let number: UInt64

    package init(milliseconds: UInt64, number: UInt64) {
        self.milliseconds = milliseconds
        self.number = number
    }

    /// `nil` if the text is no id.
    package init?(_ text: Span<UInt8>) {
        guard let dash = text.firstIndex(of: UInt8(ascii: "-")), let first = Self.number(text.extracting(0..<dash)),
            let second = Self.number(text.extracting((dash + 1)...))
        else { return nil }
        self.init(milliseconds: first, number: second)
    }

    private static func number(_ digits: Span<UInt8>) -> UInt64? {
        guard 1...20 ~= digits.count else { return nil }
        var number: UInt64 = 0
        for index in digits.indices {
            guard 0x30...0x39 ~= digits[index] else { return nil }
            let (product, overflow) = number.multipliedReportingOverflow(by: 10)
            let (sum, carry) = product.addingReportingOverflow(UInt64(digits[index] & 15))
            guard !overflow, !carry else { return nil }
            number = sum
        }
        return number
    }

    /// The id as the engine writes it.
    package var text: ByteSlice {
        let text = ByteBuffer(capacity: 24)
        text.append(decimal: milliseconds)
        text.append("-")
        text.append(decimal: number)
        return text.copied()
    }

    package static func < (left: Self, right: Self) -> Bool {
        (left.milliseconds, left.number) < (right.milliseconds, right.number)
    }
}

/// The news in the log for a machine that has read it up to a cursor.
package struct TierPurgeNews: Hashable, Sendable {
    /// Whether the log no longer has all purges after the cursor: the machine empties its memory, and reads on from
    /// `last`.
    package let isGap: Bool
    /// The first id in the log. An earlier purge, which the log no longer has, may concern a response with an `asof` before
    /// this id: the response is not used.
    package let first: TierPurgeID
    /// The last id in the log.
    package let last: TierPurgeID
    /// The purges after the cursor, at most as many as were asked for, in order.
    package let purges: [Entry]

    /// A purge in its place in the log.
    package struct Entry: Hashable, Sendable {
        package let id: TierPurgeID
        package let purge: TierPurge
    }

    /// Asks for the purges after `cursor`; `nil`: this machine has not read the log yet.
    package static func command(log: ByteSlice, after cursor: TierPurgeID?, most: Int = TierNumbers.purgesAtOnce)
        -> TierCommand
    {
        TierCommand(function: "co1_purges", keys: [log], [.bytes(cursor?.text ?? .empty), .number(most)])
    }

    /// Reads the reply.
    package init(_ reply: TierValue) throws(TierReplyError) {
        let values = try reply.list()
        guard values.count == 4 else { throw .malformed }
        switch String(try values[0].text()) {
        case "lost": isGap = true
        case "purges": isGap = false
        default: throw .malformed
        }
        first = try TierPurgeID(reading: values[1])
        last = try TierPurgeID(reading: values[2])
        var purges: [Entry] = []
        for value in try values[3].list() { purges.append(try Entry(value)) }
        self.purges = purges
    }
}

extension TierPurgeID {
    init(reading value: TierValue) throws(TierReplyError) {
        let text = try value.text()
        guard let id = TierPurgeID(text.span) else { throw .malformed }
        self = id
    }
}

extension TierPurgeNews.Entry {
    init(_ value: TierValue) throws(TierReplyError) {
        let (text, fields) = try TierFields.read(value)
        id = try TierPurgeID(reading: .text(text))
        guard let name = fields["k"], let kind = TierPurge.Kind(rawValue: String(name)), let value = fields["v"],
            let soft = fields["s"]
        else {
            // A purge of a newer version, perhaps: the safe reading is that it is one of everything.
            purge = TierPurge(.everything, .empty, isSoft: false)
            return
        }
        purge = TierPurge(kind, value, isSoft: String(soft) == "1")
    }
}
