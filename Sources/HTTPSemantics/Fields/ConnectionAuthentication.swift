import Bytes

/// Authentication of a connection, which also covers later requests on it that carry no credentials: NTLM, and
/// Negotiate (RFC 4559), which is Kerberos or NTLM. HTTP has no such concept (RFC 9110 §3.3), but many servers use it.
extension FieldView {
    /// Whether the request carries credentials that authenticate its connection.
    public var hasConnectionCredentials: Bool {
        guard !present.isDisjoint(with: FieldSet(.authorization) | .proxyAuthorization) else { return false }
        return namesConnectionScheme(.authorization) || namesConnectionScheme(.proxyAuthorization)
    }

    /// Whether a response with this status asks for such credentials.
    public func challengesConnection(_ status: Status) -> Bool {
        switch status.code {
        case 401:
            let name: StaticString = "www-authenticate"
            var next = firstIndex(named: name.bytes)
            while let index = next {
                if value(at: index).namesConnectionScheme { return true }
                next = firstIndex(named: name.bytes, from: index + 1)
            }
            return false
        case 407: return namesConnectionScheme(.proxyAuthenticate)
        default: return false
        }
    }

    private func namesConnectionScheme(_ field: KnownField) -> Bool {
        guard contains(field) else { return false }
        var lines = LineIterator(self, field)
        while let value = lines.next() {
            if value.namesConnectionScheme { return true }
        }
        return false
    }
}

extension Span where Element == UInt8 {
    /// Whether a challenge or credentials of such a scheme start at any list member (RFC 9110 §11.6.1). Commas separate
    /// also within quotes, so that an unpaired quote hides no scheme.
    fileprivate var namesConnectionScheme: Bool {
        var members = MemberIterator(self)
        while let member = members.next() {
            var end = 0
            while end < member.count, !member[end].isOptionalWhitespace { end += 1 }
            let scheme = member.extracting(0..<end)
            if scheme.isEqualIgnoringCase(to: "ntlm") || scheme.isEqualIgnoringCase(to: "negotiate") { return true }
        }
        return false
    }
}
