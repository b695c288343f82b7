import Bytes
import HTTPSemantics
import Storage
import Telemetry
import Testing
import Upstream

@testable import Proxy

/// 06 Nov 1994 08:49:37 GMT, when stored responses arrived.
let arrival = Moment(monotonic: 1_000_000_000_000, wall: 784_111_777)

extension Moment {
    func after(_ seconds: Int64) -> Moment {
        Moment(monotonic: monotonic + seconds * 1_000_000_000, wall: wall + seconds)
    }
}

extension Route {
    /// Whose requests are counted nowhere.
    convenience init(_ settings: RouteSettings, origin: Origin, _ proxy: ProxySettings) {
        self.init(
            settings, origin: origin, proxy, passCookies: CookiePatterns(proxy.caching.passCookies), LoopMetrics())
    }
}

/// A request's head as the parser gives it. Lines end with a line break; `Host` is `a.example` unless it says.
struct ParsedHead {
    let head: RequestHead
    let fields: HeadBlock

    init(_ text: String) throws {
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
    static func named(_ name: String) -> UpstreamSettings {
        UpstreamSettings(name: name, servers: [UpstreamServer(host: "127.0.0.1")])
    }
}

extension LoopSettings {
    /// With upstreams of these names.
    convenience init(_ settings: ProxySettings = ProxySettings(), upstreams: String...) {
        self.init(settings, upstreams: upstreams.map { .named($0) })
    }
}

let hash = KeyedHash(k0: 1, k1: 2)

/// A head of lines that a line break separates.
func block(_ text: String) -> HeadBlock {
    HeadBlock(lines: ByteSlice(text.split(separator: "\n").map { $0 + "\r\n" }.joined()))
}

extension Arrival {
    /// Of a request of some client.
    static func at(_ time: Moment) -> Arrival {
        Arrival(time: time, clientAddress: ByteSlice("192.0.2.1"), isFromTrustedProxy: false)
    }
}
