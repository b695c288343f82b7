/// A line of a field section: the name in lower case.
struct FieldLine: Sendable, Equatable {
    var name: String
    var value: [UInt8]
}

/// A request as HTTP/2 says it (RFC 9113 §8.3.1).
struct FramedRequest: Sendable {
    var method: String
    var target: String
    /// What `Host` said.
    var authority: String?
    var fields: [FieldLine] = []
    var hasContent = false
    /// Whether the client wants no other response on its connection.
    var endsConnection = false
}

/// Takes the requests out of the text of HTTP/1.1 that a test writes, in pieces as they come.
///
/// ```
/// head ─empty line→ head, or content ─its end→ head;  any ─what HTTP/2 cannot say→ unsayable
/// ```
struct RequestSplitter: Sendable {
    enum Event {
        case head(FramedRequest)
        case content([UInt8])
        case end(trailers: [FieldLine])
    }

    private enum Phase {
        case head
        case content(BodyReader)
        case unsayable
    }

    private var phase = Phase.head
    /// The beginning of a head.
    private var rest: [UInt8] = []
    private var trailers: [FieldLine] = []

    /// Whether the last request is not complete.
    var isAmidRequest: Bool {
        if case .content = phase { true } else { !rest.isEmpty }
    }

    /// The most that `read` takes at once: a `Body` keeps as much.
    static let atOnce = 16 << 10

    /// - Returns: `nil` if HTTP/2 has no words for it.
    mutating func read(_ bytes: ArraySlice<UInt8>) -> [Event]? {
        var events: [Event] = []
        let all = rest + bytes
        var index = 0
        rest = []
        while index < all.count {
            switch phase {
            case .unsayable: return nil
            case .head:
                guard let end = Head.end(in: all, from: index) else {
                    rest = Array(all[index...])
                    return events
                }
                guard let (request, reader) = Self.request(Array(all[index..<end])) else {
                    phase = .unsayable
                    return nil
                }
                index = end
                events.append(.head(request))
                if request.hasContent { phase = .content(reader) }
            case .content(var reader):
                var body = Body()
                index = reader.read(all, from: index, into: &body)
                if !body.kept.isEmpty { events.append(.content(body.kept)) }
                trailers += body.trailers.compactMap { Self.field(Array($0.utf8)[...]) }.filter {
                    !Self.ofConnections.contains($0.name)
                }
                phase = .content(reader)
                if reader.isEnded {
                    events.append(.end(trailers: trailers))
                    trailers = []
                    phase = .head
                } else if reader.phase == .malformed {
                    phase = .unsayable
                    return nil
                }
            }
        }
        return events
    }

    private static func request(_ bytes: [UInt8]) -> (FramedRequest, BodyReader)? {
        let head = Head(bytes)
        let words = head.startLine.split(separator: " ", omittingEmptySubsequences: false)
        guard words.count == 3, words[2] == "HTTP/1.1", words[0] != "CONNECT",
            words[1].hasPrefix("/") || words[1] == "*", head.all("host").count < 2
        else { return nil }
        var request = FramedRequest(method: head.method, target: head.target, authority: head["host"])
        let options = (head["connection"] ?? "").lowercased().split(separator: ",").map {
            $0.filter { $0 != " " && $0 != "\t" }
        }
        request.endsConnection = options.contains("close")
        let dropped = ["host"] + Self.ofConnections + options
        for line in bytes.split(separator: 0x0A).dropFirst() where line != [0x0D] {
            guard line.last == 0x0D, let field = field(line.dropLast()) else { return nil }
            switch field.name {
            case "te":
                guard String(decoding: field.value, as: UTF8.self).lowercased().contains("trailers") else { continue }
                request.fields.append(FieldLine(name: "te", value: Array("trailers".utf8)))
            case "cookie":
                // RFC 9113 §8.2.3: as browsers do.
                for crumb in field.value.split(separator: Array("; ".utf8), omittingEmptySubsequences: false) {
                    request.fields.append(FieldLine(name: "cookie", value: Array(crumb)))
                }
            default:
                if !dropped.contains(field.name) { request.fields.append(field) }
            }
        }
        let length = head.contentLength ?? 0
        request.hasContent = head.isChunked || length > 0
        return (request, head.isChunked ? .chunked : .sized(length))
    }

    /// RFC 9113 §8.2.2.
    private static let ofConnections = [
        "connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade",
    ]

    private static func field(_ line: ArraySlice<UInt8>) -> FieldLine? {
        guard let colon = line.firstIndex(of: 0x3A), colon > line.startIndex, line.first != 0x20, line.first != 0x09
        else { return nil }
        return FieldLine(
            name: String(decoding: line[..<colon], as: UTF8.self).lowercased(),
            value: Array(line[(colon + 1)...].trimmingSpaces))
    }
}
