import Bytes
public import HTTPSemantics
import Upstream

/// The names under which the servers of an upstream may name themselves in their responses: their addresses, and the
/// `Host` that they are sent. For `rewrite-location`: clients cannot or should not use these names. Immutable.
public final class OriginNames: Sendable {
    private struct Name: Sendable {
        /// In lower case.
        let host: ByteSlice
        /// `nil`: that of the scheme.
        let port: UInt16?
        /// Whether it is the address of a server with TLS.
        var isOfTLS = false
    }

    private let names: [Name]
    /// The ports that a server may add to the host that the client asked, since it is sent that host; whether it is
    /// asked over TLS.
    private let portsOfAskedHost: [(port: UInt16, isOfTLS: Bool)]

    init(_ upstream: UpstreamSettings) {
        var (names, ports) = ([Name](), [(port: UInt16, isOfTLS: Bool)]())
        for server in upstream.servers {
            guard case .tcp(_, let port) = server.location else { continue }
            if port != server.defaultPort { ports.append((port, server.isSecure)) }
            names.append(
                Name(
                    host: ByteSlice(server.host.lowercased()), port: port == server.defaultPort ? nil : port,
                    isOfTLS: server.isSecure))
        }
        if let host = upstream.host.map({ ByteSlice($0.lowercased()) }), let authority = Authority(host.span) {
            let isDefault = upstream.servers.contains { $0.defaultPort == authority.port }
            names.append(Name(host: host[authority.host.range], port: isDefault ? nil : authority.port))
            ports = []
        }
        (self.names, portsOfAskedHost) = (names, ports)
    }

    /// The fields of a response, in which each `Location` and `Content-Location` that names the origin (RFC 9110
    /// §10.2.2, §8.7) names instead the scheme and the host that the client asked.
    /// - Parameters:
    ///   - head: of the request.
    ///   - requestFields: of the request, with the bytes of `head`.
    ///   - scheme: of the URL that the client asked for.
    /// - Returns: `nil` if no line changes.
    public func renamed(
        _ fields: FieldView, for head: RequestHead, _ requestFields: FieldView, _ scheme: ClientScheme
    ) -> HeadBlock? {
        let asked = requestFields.bytes.extracting(head.authority.range)
        guard fields.contains(.location) || fields.contains(.contentLocation), !asked.isEmpty else { return nil }
        // The new values stand behind the old bytes, so that all other ranges stay.
        var end = 0
        for index in 0..<fields.lines.count { end = max(end, Int(fields.lines[index].value.upper)) }
        let bytes = ByteBuffer(capacity: end + 256)
        bytes.append(fields.bytes.extracting(0..<end))
        var lines: [FieldLine] = []
        for index in 0..<fields.lines.count {
            let (line, start) = (fields.lines[index], bytes.count)
            let isReference = line.field == .location || line.field == .contentLocation
            if isReference, let reference = Reference(fields.value(at: index), scheme),
                let keepsTLS = keepsTLS(reference, asked)
            {
                reference.write(asking: asked, scheme, keepingTLS: keepsTLS, to: bytes)
                lines.append(FieldLine(name: line.name, value: ByteRange(start..<bytes.count), field: line.field))
            } else {
                lines.append(line)
            }
        }
        guard bytes.count > end else { return nil }
        return HeadBlock(bytes: bytes.span, lines: lines.span, present: fields.present)
    }

    /// - Returns: whether a reference to https stays one for a client of http: not if it names a server that is itself
    ///   asked over TLS; `nil` if the reference does not name the origin.
    private func keepsTLS(_ reference: borrowing Reference, _ asked: Span<UInt8>) -> Bool? {
        for name in names {
            let host = name.host
            guard name.port == reference.port, host.span.isEqualIgnoringCase(to: reference.host) else { continue }
            // Where clients ask for the server's own name, https may be meant for them.
            return !name.isOfTLS || name.port == nil && host.span.isEqualIgnoringCase(to: asked.hostPart)
        }
        guard let port = reference.port, let server = portsOfAskedHost.first(where: { $0.port == port }),
            let own = Authority(asked), own.port != port,
            asked.extracting(own.host.range).isEqualIgnoringCase(to: reference.host)
        else { return nil }
        return !server.isOfTLS
    }
}

/// A reference that names a host (RFC 3986 §4.2): `http://host/path`, or `//host/path`.
private struct Reference: ~Escapable {
    /// The port; `nil`: that of the scheme.
    let port: UInt16?
    let host: Span<UInt8>
    /// What follows the authority.
    let rest: Span<UInt8>
    let isSecure: Bool

    /// `nil` for a relative reference without a host, one with a user name, and one of another scheme.
    /// - Parameter base: the scheme of a reference without one.
    @_lifetime(copy text)
    init?(_ text: Span<UInt8>, _ base: ClientScheme) {
        var scheme = base
        var rest = text
        if text.hasPrefixIgnoringCase("http:") {
            scheme = .http
            rest = text.extracting(5...)
        } else if text.hasPrefixIgnoringCase("https:") {
            scheme = .https
            rest = text.extracting(6...)
        }
        guard rest.hasPrefix("//") else { return nil }
        rest = rest.extracting(2...)
        var end = 0
        while end < rest.count, rest[end] != UInt8(ascii: "/"), rest[end] != UInt8(ascii: "?"),
            rest[end] != UInt8(ascii: "#")
        {
            end += 1
        }
        guard let authority = Authority(rest.extracting(0..<end)) else { return nil }
        port = authority.port == scheme.defaultPort ? nil : authority.port
        host = rest.extracting(authority.host.range)
        self.rest = rest.extracting(end...)
        isSecure = scheme.isSecure
    }

    /// Writes the reference with the scheme and the host that the client asked.
    /// - Parameter keepsTLS: whether a reference to https in the answer to a request by http leads clients to https on
    ///   purpose: the scheme stays, and the port, which is that of http, goes.
    func write(asking asked: Span<UInt8>, _ scheme: ClientScheme, keepingTLS keepsTLS: Bool, to buffer: ByteBuffer) {
        if keepsTLS, isSecure, !scheme.isSecure {
            buffer.append("https://")
            buffer.append(lowercasing: asked.hostPart)
        } else {
            buffer.append(scheme.name)
            buffer.append("://")
            buffer.appendKeyHost(asked, defaultPort: scheme.defaultPort)
        }
        buffer.append(rest)
    }
}
