import Bytes

/// Finished requests that wait to be written: fixed-size entries, and one run of bytes for all their texts. A value
/// without a lock; each loop has three, which circulate between its `AccessLogBuffer`, its `AccessLogQueue` and the
/// writer.
struct AccessLogBatch: Sendable {
    /// The most bytes that entries and texts may take together.
    let capacity: Int
    private(set) var entries: [Entry] = []
    private(set) var texts: [UInt8] = []
    /// The number of records that did not fit.
    var dropped: UInt64 = 0

    /// A record, and the places of its texts. 80 bytes: each cache line saved makes a hit cheaper.
    struct Entry: Sendable {
        var record: TransactionRecord
        /// The end of each text, counted from `textStart`.
        var ends = InlineArray<8, UInt16>(repeating: 0)
        /// The start of the first text in `texts`; the others follow in the order of `TransactionText`.
        var textStart: UInt32
        var isClipped = false

        init(_ record: TransactionRecord, textStart: Int) {
            self.record = record
            // At most `mostCapacity`.
            self.textStart = UInt32(truncatingIfNeeded: textStart)
        }

        /// The range of one text in `texts`.
        @inline(__always)
        func range(of text: TransactionText) -> Range<Int> { range(from: text, through: text) }

        /// The range of the adjacent texts from `first` to `last`.
        @inline(__always)
        func range(from first: TransactionText, through last: TransactionText) -> Range<Int> {
            let start = first == .client ? 0 : Int(ends[Int(first.rawValue) &- 1])
            return Int(textStart) &+ start..<Int(textStart) &+ Int(ends[Int(last.rawValue)])
        }
    }

    /// The largest capacity: the start of every text fits 32 bits.
    static let mostCapacity = 1 << 31

    /// Reserves all memory that the batch will ever use, so that appending never allocates. Reserved memory that is
    /// never touched stays virtual.
    init(capacity: Int) {
        let capacity = min(capacity, Self.mostCapacity)
        self.capacity = capacity
        entries.reserveCapacity(capacity / MemoryLayout<Entry>.stride)
        texts.reserveCapacity(capacity)
    }

    /// The number of lines.
    var count: Int { entries.count }
    var isEmpty: Bool { entries.isEmpty }
    /// Bytes taken, out of `capacity`.
    var used: Int { entries.count * MemoryLayout<Entry>.stride + texts.count }

    /// Appends one finished request. Returns `false`, with nothing changed, if it does not fit.
    @inline(__always) // Into `AccessLogBuffer.append`: the record and eight spans are not passed twice.
    mutating func append(
        _ record: TransactionRecord,
        client: Span<UInt8>, method: Span<UInt8>, host: Span<UInt8>, target: Span<UInt8>, upstream: Span<UInt8>,
        detail: Span<UInt8>,
        referer: Span<UInt8>, userAgent: Span<UInt8>
    ) -> Bool {
        let longest =
            client.count + method.count + host.count + target.count + upstream.count + detail.count + referer.count
            + userAgent.count
        // A clipped request counts as longer than it becomes: near the end it is dropped too early, never too late.
        guard used + MemoryLayout<Entry>.stride + min(longest, TransactionText.allLimits) <= capacity else {
            return false
        }
        var entry = Entry(record, textStart: texts.count)
        texts.append(addingCapacity: min(longest, TransactionText.allLimits)) { output in
            entry.keep(client, as: .client, in: &output)
            entry.keep(method, as: .method, in: &output)
            entry.keep(host, as: .host, in: &output)
            entry.keep(target, as: .target, in: &output)
            entry.keep(upstream, as: .upstream, in: &output)
            entry.keep(detail, as: .detail, in: &output)
            entry.keep(referer, as: .referer, in: &output)
            entry.keep(userAgent, as: .userAgent, in: &output)
        }
        entries.append(entry)
        return true
    }

    /// Removes all records and keeps the memory.
    mutating func removeAll() {
        entries.removeAll(keepingCapacity: true)
        texts.removeAll(keepingCapacity: true)
        dropped = 0
    }
}

extension AccessLogBatch.Entry {
    @inline(__always)
    fileprivate mutating func keep(_ bytes: Span<UInt8>, as text: TransactionText, in output: inout OutputSpan<UInt8>) {
        let kept = bytes.extracting(first: text.limit)
        if kept.count < bytes.count { isClipped = true }
        if !kept.isEmpty { output.append(copying: kept) }
        let index = Int(text.rawValue)
        // All texts together are far less than 64 KiB: `TransactionText.allLimits`.
        ends[index] = (index == 0 ? 0 : ends[index &- 1]) &+ UInt16(truncatingIfNeeded: kept.count)
    }
}

extension TransactionText {
    /// The most bytes that one record's texts can take.
    static let allLimits = allCases.reduce(0) { $0 + $1.limit }
}
