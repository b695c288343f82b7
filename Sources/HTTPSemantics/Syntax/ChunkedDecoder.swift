/// Takes the chunked transfer coding off a body (RFC 9112 §7.1), in whatever pieces it arrives.
///
///     size ⇄ extension ─CR→ lineFeed ─size > 0→ data → dataCR → dataLF ─→ size
///                                    ─size = 0→ trailers ─empty line→ ended
///     any ─bad byte→ failed
///
/// Trailers stay unconsumed until all of them are there, and are bounded. Everything else is consumed as it comes.
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
    /// Bytes left of the chunk being read; while its size is read, what the digits say so far.
    private var remaining: UInt64 = 0
    private var digits = 0
    /// Bytes of this chunk's line after its size.
    private var extensionLength = 0
    /// How much more the chunk lines took than is reasonable for their data.
    private var excess = 0
    /// Bytes of the body before the present input, for errors.
    private var passed = 0
    private var section: FieldSectionParser
    private let trailerLimit: Int
    private var trailerRange = 0..<0

    /// Sixteen digits fill 64 bits; padding a size with more zeroes serves nobody.
    static let maxSizeDigits = 16
    /// A signature fits in.
    static let maxExtensionLength = 256
    /// Tiny chunks with long lines cost the reader much and the sender little; net/http allows as much of it.
    static let maxExcess = 16_384

    /// - Parameter trailerLimits: for the trailer section; one beyond them is an error.
    package init(trailerLimits: HeadLimits = .trailers) {
        section = FieldSectionParser(maxLines: trailerLimits.maxFieldLines)
        trailerLimit = trailerLimits.maxHeadBytes
    }

    /// Ready for the next body; memory is kept.
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

    /// The trailer fields, once `decode` said `end`; `input` is what it was given then. They are not header fields
    /// and must not be merged into them unasked (RFC 9110 §6.5.1).
    @_lifetime(copy input, borrow self)
    package func trailers(in input: Span<UInt8>) -> FieldView {
        FieldView(bytes: input.extracting(trailerRange), lines: section.lines, present: section.present)
    }

    /// Reads on in `input`, which starts with the first byte not yet consumed.
    /// - Throws: what is wrong with the framing, and where. The body is broken from there on.
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
            // Held to `Int64.max`, so that nothing that adds lengths overflows.
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
        // 16 bytes of line and twice the data are free.
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
