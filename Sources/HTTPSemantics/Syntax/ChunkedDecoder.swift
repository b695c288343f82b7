/// Removes the chunked transfer coding from a body that arrives in pieces of any size (RFC 9112 §7.1).
///
///     size ⇄ extension ─CR→ lineFeed ─size > 0→ data → dataCR → dataLF ─→ size
///                                    ─size = 0→ trailers ─empty line→ ended
///     any ─bad byte→ failed
///
/// The trailer section stays unconsumed until all of it has arrived, and its size is bounded. All other bytes are
/// consumed as they arrive.
package struct ChunkedDecoder: Sendable {
    private enum State {
        case size
        case `extension`(ChunkExtension)
        case lineFeed
        case data, dataCR, dataLF
        case trailers
        case ended
        case failed(MessageSyntaxError)
    }

    private var state = State.size
    /// Bytes left of the present chunk; in state `size`, the value of the digits so far.
    private var remaining: UInt64 = 0
    private var digits = 0
    /// Bytes of this chunk's size line after the size.
    private var extensionLength = 0
    /// By how many bytes the size lines exceed a reasonable share of their data.
    private var excess = 0
    /// Bytes of the body before the present input, for the positions in errors.
    private var passed = 0
    private var section: FieldSectionParser
    private let trailerLimit: Int
    private var trailerRange = 0..<0

    /// Sixteen digits fill 64 bits; more leading zeroes have no use.
    static let maxSizeDigits = 16
    /// Enough for a signature.
    static let maxExtensionLength = 256
    /// Tiny chunks with long size lines cost the reader much and the sender little; Go's net/http allows the same
    /// excess.
    static let maxExcess = 16_384

    /// - Parameter trailerLimits: for the trailer section; a section beyond them is an error.
    package init(trailerLimits: HeadLimits = .trailers) {
        section = FieldSectionParser(maxLines: trailerLimits.maxFieldLines)
        trailerLimit = trailerLimits.maxHeadBytes
    }

    /// Prepares for the next body; memory is kept.
    package mutating func reset() {
        state = .size
        remaining = 0
        digits = 0
        extensionLength = 0
        excess = 0
        passed = 0
        section.reset()
        trailerRange = 0..<0
    }

    /// The trailer fields, after `decode` returned `end`; `input` is the argument of that call. Trailer fields are not
    /// header fields and must not be merged into the header section unless their definition permits it (RFC 9110
    /// §6.5.1).
    @_lifetime(copy input, borrow self)
    package func trailers(in input: Span<UInt8>) -> FieldView {
        FieldView(bytes: input.extracting(trailerRange), lines: section.lines, present: section.present)
    }

    /// Continues with `input`, which starts with the first byte not yet consumed.
    /// - Throws: the first error in the framing, with its position. The rest of the body is unusable.
    package mutating func decode(_ input: Span<UInt8>) throws(MessageSyntaxError) -> BodyStep {
        do throws(MessageSyntaxError) {
            let step = try advance(input)
            passed &+= step.consumed
            return step
        } catch {
            state = .failed(error)
            throw error
        }
    }

    private mutating func advance(_ input: Span<UInt8>) throws(MessageSyntaxError) -> BodyStep {
        var index = 0
        while index < input.count {
            switch state {
            case .size:
                try takeSize(input[index], at: passed &+ index)
            case .extension(var chunkExtension):
                extensionLength &+= 1
                guard extensionLength <= Self.maxExtensionLength
                else { throw MessageSyntaxError(.chunkExtensionsTooLong, at: passed &+ index) }
                switch chunkExtension.take(input[index]) {
                case .more: state = .extension(chunkExtension)
                case .finished: state = .lineFeed
                case .invalid: throw MessageSyntaxError(.chunkExtensionInvalid, at: passed &+ index)
                }
            case .lineFeed:
                try finishSizeLine(input[index], at: passed &+ index)
            case .data:
                let count = Int(min(remaining, UInt64(input.count &- index)))
                remaining &-= UInt64(count)
                if remaining == 0 { state = .dataCR }
                return BodyStep(index &+ count, .data(index..<index &+ count))
            case .dataCR:
                guard input[index] == 0x0d else { throw MessageSyntaxError(.chunkEndMissing, at: passed &+ index) }
                state = .dataLF
            case .dataLF:
                guard input[index] == 0x0a else { throw MessageSyntaxError(.chunkEndMissing, at: passed &+ index) }
                state = .size
            case .trailers:
                return try takeTrailers(input, from: index)
            case .ended:
                return BodyStep(index, .end)
            case .failed(let error):
                throw error
            }
            index &+= 1
        }
        if case .ended = state { return BodyStep(index, .end) }
        return BodyStep(index, .needMore)
    }

    private mutating func takeSize(_ byte: UInt8, at position: Int) throws(MessageSyntaxError) {
        if let digit = byte.hexadecimalValue {
            digits &+= 1
            // At most `Int64.max`, so that sums of lengths do not overflow.
            guard digits <= Self.maxSizeDigits, remaining >> 59 == 0
            else { throw MessageSyntaxError(.chunkSizeTooLarge, at: position) }
            remaining = remaining << 4 | UInt64(digit)
            return
        }
        guard digits > 0 else { throw MessageSyntaxError(.chunkSizeInvalid, at: position) }
        if byte == 0x0d {
            state = .lineFeed
        } else if let chunkExtension = ChunkExtension(first: byte) {
            extensionLength = 1
            state = .extension(chunkExtension)
        } else {
            throw MessageSyntaxError(.chunkSizeInvalid, at: position)
        }
    }

    private mutating func finishSizeLine(_ byte: UInt8, at position: Int) throws(MessageSyntaxError) {
        guard byte == 0x0a else { throw MessageSyntaxError(.chunkSizeInvalid, at: position) }
        // A size line of 16 bytes plus twice the chunk's data adds no excess.
        let free = 16 + 2 * Int(min(remaining, 1 << 20))
        excess = max(0, excess + digits + extensionLength + 2 - free)
        guard excess <= Self.maxExcess else { throw MessageSyntaxError(.chunkExtensionsTooLong, at: position) }
        digits = 0
        extensionLength = 0
        state = remaining == 0 ? .trailers : .data
    }

    private mutating func takeTrailers(_ input: Span<UInt8>, from start: Int) throws(MessageSyntaxError) -> BodyStep {
        let bytes = input.extracting(start...)
        do throws(MessageSyntaxError) {
            while let line = try section.nextLine(in: bytes, limit: trailerLimit, excess: .trailersTooLarge) {
                if line.isEmpty {
                    trailerRange = start..<(start + section.lineStart)
                    state = .ended
                    return BodyStep(trailerRange.upperBound, .end)
                }
                try section.addLine(line, in: bytes)
            }
        } catch {
            throw MessageSyntaxError(error.reason, at: passed &+ start &+ error.position)
        }
        return BodyStep(start, .needMore)
    }
}
