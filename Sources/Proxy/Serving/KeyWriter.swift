import Bytes
import HTTPSemantics

/// Writes the primary cache key of a request (RFC 9111 §2): scheme, host and target, and what a route adds. One a loop; the
/// buffer is used again for every request.
///
/// Two requests have the same key exactly when they have the same bytes here. No byte that separates the parts can stand in them.
final class KeyWriter {
    /// The key written last, until the next call.
    let bytes = ByteBuffer(capacity: 512)
    private let hash: KeyedHash

    init(hash: KeyedHash) { self.hash = hash }

    /// Writes the key into `bytes`.
    func write(_ head: RequestHead, _ fields: FieldView, _ settings: KeySettings) {
        let buffer = bytes
        buffer.removeAll()
        buffer.append("http ")
        buffer.appendKeyHost(fields.bytes.extracting(head.authority.range), defaultPort: 80)
        buffer.append(UInt8(ascii: " "))
        let target = head.target
        if target.path.count == 0 {
            buffer.append(UInt8(ascii: "/"))
        } else {
            buffer.append(fields.bytes.extracting(target.path.range))
        }
        appendQuery(target, fields, settings)
        for name in settings.fields { appendField(Array(name.utf8).span, fields) }
        for name in settings.cookies { appendCookie(Array(name.utf8).span, fields) }
    }

    func hashed() -> UInt64 {
        let buffer = bytes
        return hash.hash(buffer.span)
    }

    /// The key written last, to keep.
    func key() -> CacheKey { CacheKey(hash: hashed(), bytes: bytes.copied()) }

    private func appendQuery(_ target: RequestTarget, _ fields: FieldView, _ settings: KeySettings) {
        let buffer = bytes
        guard target.hasQuery else { return }
        let query = fields.bytes.extracting(target.query.range)
        if settings.query == .all, !settings.sortsQuery {
            buffer.append(UInt8(ascii: "?"))
            buffer.append(query)
            return
        }
        let kept = QueryParameters(query, policy: settings.query, sorted: settings.sortsQuery)
        guard !kept.isEmpty else { return }
        buffer.append(UInt8(ascii: "?"))
        kept.append(to: buffer)
    }

    private func appendField(_ name: Span<UInt8>, _ fields: FieldView) {
        let buffer = bytes
        buffer.append("\n")
        buffer.append(name)
        var line = fields.firstIndex(named: name)
        while let index = line {
            buffer.append(UInt8(ascii: ":"))
            buffer.append(fields.value(at: index))
            line = fields.firstIndex(named: name, from: index + 1)
        }
    }

    /// The first cookie of that name (RFC 6265 §5.4 puts the most specific first).
    private func appendCookie(_ name: Span<UInt8>, _ fields: FieldView) {
        let buffer = bytes
        buffer.append("\ncookie ")
        buffer.append(name)
        var line = fields.firstIndex(of: .cookie)
        while let index = line {
            let value = fields.value(at: index)
            var start = 0
            while start < value.count {
                let end = value.firstIndex(of: UInt8(ascii: ";"), from: start) ?? value.count
                let pair = value.extracting(start..<end).trimmingOptionalWhitespace()
                if pair.count > name.count, pair[name.count] == UInt8(ascii: "="), pair.extracting(0..<name.count).isEqual(to: name) {
                    buffer.append(pair.extracting(name.count..<pair.count))
                    return
                }
                start = end + 1
            }
            line = fields.firstIndex(of: .cookie, from: index + 1)
        }
    }
}

/// The parameters of a query that belong to a key. Off the hot path: only where a route asks for it.
struct QueryParameters {
    private var parameters: [[UInt8]] = []

    init(_ query: Span<UInt8>, policy: QueryPolicy, sorted: Bool) {
        var start = 0
        while start <= query.count {
            let end = query.firstIndex(of: UInt8(ascii: "&"), from: start) ?? query.count
            var parameter: [UInt8] = []
            for index in start..<end { parameter.append(query[index]) }
            let name = String(decoding: parameter.prefix { $0 != UInt8(ascii: "=") }, as: UTF8.self)
            if Self.isKept(name, policy) { parameters.append(parameter) }
            start = end + 1
        }
        if sorted { parameters.sort { $0.lexicographicallyPrecedes($1) } }
    }

    var isEmpty: Bool { parameters.isEmpty }

    func append(to buffer: ByteBuffer) {
        for (index, parameter) in parameters.enumerated() {
            if index > 0 { buffer.append(UInt8(ascii: "&")) }
            buffer.append(parameter.span)
        }
    }

    private static func isKept(_ name: String, _ policy: QueryPolicy) -> Bool {
        switch policy {
        case .all: true
        case .none: false
        case .keep(let names): names.contains(name)
        case .drop(let names): !names.contains(name)
        }
    }
}
