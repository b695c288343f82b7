import Bytes
import HTTPSemantics

/// An absolute URL read as the target of a request, so that its key is that of the requests for it.
public struct ParsedURL {
    let head: RequestHead
    let fields: HeadBlock
    let scheme: ClientScheme

    /// `nil` when `url` is no absolute URL of a scheme that clients use.
    public init?(_ url: String) {
        let start = url.prefix(8).lowercased()
        guard let scheme = ClientScheme.allCases.first(where: { start.hasPrefix("\($0.name)://") }),
            !url.utf8.contains(where: { $0 <= 0x20 || $0 == 0x7f })
        else { return nil }
        self.scheme = scheme
        let text = ByteSlice("GET \(url) HTTP/1.1\r\nHost: purge\r\n\r\n")
        var parser = RequestHeadParser(
            limits: HeadLimits(maxHeadBytes: 65_536, maxFieldLines: 4, maxTargetLength: 65_000))
        do throws(MessageSyntaxError) {
            guard case .complete = try parser.parse(text.span) else { return nil }
        } catch {
            return nil
        }
        head = parser.head
        fields = HeadBlock(copying: parser.view(in: text.span))
    }

    /// `url` as people mean it where a proxy before this one may terminate TLS: with either scheme. What that proxy was
    /// asked for by https is stored under https if it is trusted and says so, and under http if not.
    public static func ofEachScheme(_ url: String) -> [ParsedURL]? {
        guard let parsed = ParsedURL(url) else { return nil }
        let rest = url.dropFirst("\(parsed.scheme.name)://".utf8.count)
        let authority = rest.prefix { !"/?#".contains($0) }
        // Neither scheme's own port is in the URL of the other.
        let port = ":\(parsed.scheme.defaultPort)"
        let host = authority.hasSuffix(port) ? authority.dropLast(port.count) : authority
        return ClientScheme.allCases.compactMap { ParsedURL("\($0.name)://\(host)\(rest[authority.endIndex...])") }
    }

    /// Writes the key that a request without fields has for it.
    func write(to writer: KeyWriter, _ policy: KeyPolicy) { writer.write(head, fields.view, scheme, policy) }
    /// Writes the key that a request with the fields of another one has for it.
    func write(to writer: KeyWriter, _ policy: KeyPolicy, as request: FieldView) {
        writer.write(head, fields.view, scheme, policy, as: request)
    }
}
