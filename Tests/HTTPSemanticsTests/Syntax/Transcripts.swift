import Bytes
import HTTPSemantics

/// How a message reaches a parser.
enum Delivery: CustomStringConvertible {
    case atOnce
    case byteByByte
    /// Cuts at these offsets.
    case cut([Int])

    var description: String {
        switch self {
        case .atOnce: "at once"
        case .byteByByte: "byte by byte"
        case .cut(let offsets): "cut at \(offsets)"
        }
    }

    /// How much of `count` bytes is there at each call.
    func lengths(_ count: Int) -> [Int] {
        switch self {
        case .atOnce: [count]
        case .byteByByte: count == 0 ? [0] : Array(1...count)
        case .cut(let offsets): offsets.filter { $0 < count }.sorted() + [count]
        }
    }
}

func plain(_ bytes: Span<UInt8>) -> String { String(bytes) }

func wire(_ text: String) -> [UInt8] {
    // One byte a character, so that tables can name any byte.
    text.unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) }
}

func describe(_ framing: MessageFraming) -> String {
    switch framing {
    case .none: "none"
    case .length(let count): "\(count)"
    case .chunked: "chunked"
    case .untilClose: "close"
    }
}

func describe(_ error: MessageSyntaxError) -> String { "\(error.status.code) \(error.name) @\(error.position)" }

extension HeadLimits {
    /// No request of the tables is as large, but for those that name limits of their own.
    static let roomy = HeadLimits(maxHeadBytes: 16_384, maxFieldLines: 100, maxTargetLength: 8000)
}

/// What a parser makes of `message`, in one line that two deliveries can be compared by.
func readRequest(_ message: [UInt8], _ delivery: Delivery = .atOnce, limits: HeadLimits = .roomy) -> String {
    var parser = RequestHeadParser(limits: limits)
    return readRequest(message, delivery, &parser)
}

func readRequest(_ message: [UInt8], _ delivery: Delivery, _ parser: inout RequestHeadParser) -> String {
    parser.reset()
    do throws(MessageSyntaxError) {
        for length in delivery.lengths(message.count) {
            let received = message.span.extracting(0..<length)
            guard case .complete(let headLength) = try parser.parse(received) else { continue }
            let head = parser.head
            func part(_ range: ByteRange) -> String { plain(message.span.extracting(range.range)) }
            var line = "\(part(head.methodRange)) \(part(head.target.whole)) \(head.version) "
            line += "\(head.target.form) host=\(part(head.authority)) path=\(part(head.target.path)) "
            line += "query=\(head.target.hasQuery ? part(head.target.query) : "-") body=\(describe(head.framing)) "
            line += "keep=\(head.keepsAlive) expect=\(head.expectation) upgrade=\(head.asksForUpgrade) "
            line += "head=\(headLength)" + fieldText(parser.view(in: received))
            return line
        }
        return "incomplete"
    } catch {
        return describe(error)
    }
}

func readResponse(
    _ message: [UInt8], _ delivery: Delivery = .atOnce, to method: Method = .get, limits: HeadLimits = .response
) -> String {
    var parser = ResponseHeadParser(limits: limits, answering: method)
    do throws(MessageSyntaxError) {
        for length in delivery.lengths(message.count) {
            let received = message.span.extracting(0..<length)
            guard case .complete(let headLength) = try parser.parse(received) else { continue }
            let head = parser.head
            var line = "\(head.status.code) '\(plain(message.span.extracting(head.reason.range)))' \(head.version) "
            line += "body=\(describe(head.framing)) length=\(head.contentLength.map { "\($0)" } ?? "-") "
            line += "keep=\(head.keepsAlive) head=\(headLength)" + fieldText(parser.view(in: received))
            return line
        }
        return "incomplete"
    } catch {
        return describe(error)
    }
}

func fieldText(_ fields: FieldView) -> String {
    var result = ""
    for index in 0..<fields.lines.count {
        result += " [\(plain(fields.name(at: index)))=\(plain(fields.value(at: index)))]"
    }
    return result
}

/// The content, how it ended, and what was left behind it.
func readBody(_ body: [UInt8], _ framing: MessageFraming, _ delivery: Delivery = .atOnce) -> String {
    var decoder = BodyDecoder(framing)
    var content: [UInt8] = []
    var start = 0
    do throws(MessageSyntaxError) {
        for length in delivery.lengths(body.count) {
            reading: while true {
                let input = body.span.extracting(start..<length)
                let step = try decoder.decode(input)
                switch step.action {
                case .data(let range):
                    for index in range { content.append(input[index]) }
                    start += step.consumed
                case .needMore:
                    start += step.consumed
                    break reading
                case .end:
                    let trailers = fieldText(decoder.trailers(in: input))
                    start += step.consumed
                    return "\(plain(content.span))| rest=\(plain(body.span.extracting(start...)))" + trailers
                }
            }
        }
        return "\(plain(content.span))| \(decoder.endOfStream())"
    } catch {
        return "\(plain(content.span))| \(describe(error))"
    }
}
