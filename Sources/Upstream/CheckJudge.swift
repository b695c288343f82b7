import Bytes
import HTTPSemantics

/// Judges the response to one check as its bytes come. A value without I/O.
///
/// ```
/// head ─1xx→ head
///  ├─malformed, a status that is not expected→ failed
///  └─an expected status→ content ─its end, 64 KiB of it→ success, or failed for want of the text
///                           └─malformed, closed too early→ failed
/// ```
struct CheckJudge: ~Copyable {
    /// The most bytes of content that are read: an answer to a check is short.
    static let mostContent = 64 << 10

    private let expected: ClosedRange<UInt16>
    private let text: String
    private var reader: ResponseReader
    /// The content so far, if a text is looked for in it.
    private let content = ByteBuffer(capacity: 0)
    private var count = 0

    init(_ health: HealthSettings, maxHeadSize: Int) {
        expected = health.expected
        text = health.body
        reader = ResponseReader(maxHeadSize: maxHeadSize)
        reader.begin(answering: .get)
    }

    /// Reads the bytes of `input`, and consumes them as far as it needs them no more.
    /// - Returns: `nil`: more bytes are needed.
    mutating func read(_ input: ByteBuffer) -> CheckEnd? {
        while true {
            let event: ResponseReader.Event
            do throws(MessageSyntaxError) {
                event = try reader.next(in: input.span)
            } catch {
                return .failed(.malformed(.syntax(error.reason)))
            }
            switch event {
            case .needMore: return nil
            case .interim(let length):
                guard !reader.hasTooManyInterim else { return .failed(.malformed(.tooManyInterimResponses)) }
                input.consume(length)
            case .switched: return .failed(.malformed(.unaskedSwitch))
            case .head(let length):
                let status = reader.status
                guard expected.contains(status.code) else { return .failed(.status(status.code)) }
                guard status != .notModified else { return .failed(.malformed(.unaskedNotModified)) }
                input.consume(length)
            case .body(let range, let consumed, let isLast):
                take(input.span.extracting(range))
                input.consume(consumed)
                if isLast || count == Self.mostContent { return judgement }
            case .end: return judgement
            }
        }
    }

    /// The connection has ended, and all its bytes were read.
    mutating func endOfStream() -> CheckEnd {
        switch reader.endOfStream() {
        case .complete: judgement
        case .truncated, .beforeHead: .failed(.closed)
        }
    }

    private mutating func take(_ bytes: Span<UInt8>) {
        let taken = bytes.extracting(first: Self.mostContent - count)
        count += taken.count
        if !text.isEmpty { content.append(taken) }
    }

    private var judgement: CheckEnd {
        let wanted = ByteSlice(text)
        return content.span.contains(wanted.span) ? .success : .failed(.lacks(text))
    }
}

extension Span where Element == UInt8 {
    /// Whether `text` stands anywhere in the bytes.
    fileprivate func contains(_ text: Span<UInt8>) -> Bool {
        guard text.count > 0 else { return true }
        var start = 0
        while let index = firstIndex(of: text[0], from: start), count - index >= text.count {
            if extracting(index..<index + text.count).isEqual(to: text) { return true }
            start = index + 1
        }
        return false
    }
}
