package import Bytes
package import HTTPSemantics
package import Routing
package import Upstream

/// A request's head as the parser gives it. Lines end with a line break; `Host` is `a.example` unless it says.
package struct ParsedHead {
    package let head: RequestHead
    package let fields: HeadBlock

    package init(_ text: String) throws {
        var lines = text.split(separator: "\n").map(String.init)
        lines[0] += " HTTP/1.1"
        if !lines.contains(where: { $0.lowercased().hasPrefix("host:") }) { lines.append("Host: a.example") }
        let bytes = ByteSlice((lines + ["", ""]).joined(separator: "\r\n"))
        var parser = RequestHeadParser(
            limits: HeadLimits(maxHeadBytes: 16_384, maxFieldLines: 100, maxTargetLength: 8_000))
        guard case .complete = try parser.parse(bytes.span) else { throw Incomplete(text: text) }
        head = parser.head
        fields = HeadBlock(copying: parser.view(in: bytes.span))
    }

    struct Incomplete: Error { let text: String }
}

extension UpstreamSettings {
    package static func named(_ name: String) -> UpstreamSettings {
        UpstreamSettings(name: name, servers: [UpstreamServer(host: "127.0.0.1")])
    }
}

extension LoopSettings {
    /// With upstreams of these names.
    package convenience init(_ settings: ProxySettings = ProxySettings(), upstreams: String...) {
        self.init(settings, upstreams: upstreams.map { .named($0) })
    }
}

package let hash = KeyedHash(k0: 1, k1: 2)

/// A head of lines that a line break separates.
package func block(_ text: String) -> HeadBlock {
    HeadBlock(lines: ByteSlice(text.split(separator: "\n").map { $0 + "\r\n" }.joined()))
}
