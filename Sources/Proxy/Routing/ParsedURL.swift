import Bytes
import HTTPSemantics

/// An absolute URL read as the target of a request, so that its key is that of the requests for it.
public struct ParsedURL {
    let head: RequestHead
    let fields: HeadBlock

    /// `nil` when `url` is no absolute URL of the scheme that clients use.
    public init?(_ url: String) {
        guard url.lowercased().hasPrefix("\(ClientScheme.ofClients.name)://"),
            !url.utf8.contains(where: { $0 <= 0x20 || $0 == 0x7f })
        else { return nil }
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

    /// What is stored of `url` where it may be one that clients of a TLS terminator in front ask for: that server asks
    /// for it by http, under which it is stored. The default port of https is as little in its `Host` as that of http.
    public init?(asClientsSay url: String) {
        let scheme = "https://"
        guard url.lowercased().hasPrefix(scheme) else {
            self.init(url)
            return
        }
        let rest = url.dropFirst(scheme.count)
        let authority = rest.prefix { !"/?#".contains($0) }
        let host = authority.hasSuffix(":443") ? authority.dropLast(4) : authority
        self.init("\(ClientScheme.ofClients.name)://\(host)\(rest[authority.endIndex...])")
    }

    /// Writes the key that a request without fields has for it.
    func write(to writer: KeyWriter, _ policy: KeyPolicy) { writer.write(head, fields.view, policy) }
    /// Writes the key that a request with the fields of another one has for it.
    func write(to writer: KeyWriter, _ policy: KeyPolicy, as request: FieldView) {
        writer.write(head, fields.view, policy, as: request)
    }
}
