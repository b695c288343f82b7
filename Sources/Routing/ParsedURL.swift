import Bytes
package import HTTPSemantics

/// An absolute URL, parsed as the target of a request, so that it has the same key as requests for it.
package struct ParsedURL {
    /// The head of a request for the URL.
    package let head: RequestHead
    /// The fields of that request.
    package let fields: HeadBlock
    let scheme: ClientScheme

    /// `nil` if `url` is no absolute http or https URL.
    package init?(_ url: String) {
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

    /// `url` with each of the two schemes. A response to a request that came by https to a proxy in front of this one
    /// is stored under https if that proxy is trusted and says so, and under http otherwise; an operator means both.
    package static func ofEachScheme(_ url: String) -> [ParsedURL]? {
        guard let parsed = ParsedURL(url) else { return nil }
        let rest = url.dropFirst("\(parsed.scheme.name)://".utf8.count)
        let authority = rest.prefix { !"/?#".contains($0) }
        // Remove the scheme's default port, which would be wrong in the URL with the other scheme.
        let port = ":\(parsed.scheme.defaultPort)"
        let host = authority.hasSuffix(port) ? authority.dropLast(port.count) : authority
        return ClientScheme.allCases.compactMap { ParsedURL("\($0.name)://\(host)\(rest[authority.endIndex...])") }
    }

    /// Writes the key of a request for this URL without fields.
    package func write(to writer: KeyWriter, _ policy: KeyPolicy) { writer.write(head, fields.view, scheme, policy) }
    /// Writes the key of a request for this URL with the fields of another request.
    package func write(to writer: KeyWriter, _ policy: KeyPolicy, as request: FieldView) {
        writer.write(head, fields.view, scheme, policy, as: request)
    }
}
