import Bytes
package import HTTPSemantics

/// The head in a record, read by the rules for heads from origins.
package struct TierHead: Sendable {
    /// No record has a field of one connection (RFC 9111 §3.1), or `Age`, which the engine's clock gives.
    private static let never =
        FieldSet(.connection) | .proxyConnection | .keepAlive | .te | .transferEncoding | .upgrade | .http2Settings
        | .proxyAuthenticate | .proxyAuthenticationInfo | .age

    /// The status and the length.
    package let head: ResponseHead
    package let fields: HeadBlock

    /// Reads the head of a final response to GET. The rules for heads from origins then decide what it is used for.
    package init(_ record: TierRecord, limits: HeadLimits = .response) throws(TierRefusal) {
        var parser = ResponseHeadParser(limits: limits)
        let bytes = record.head.span
        guard let progress = try? parser.parse(bytes), progress == .complete(headLength: bytes.count) else {
            throw .head
        }
        guard parser.head.status.code >= 200 else { throw .head }
        guard parser.present.isDisjoint(with: Self.never) else { throw .connectionField }
        head = parser.head
        fields = HeadBlock(copying: parser.view(in: bytes))
    }

    /// The length of the body if the head announces one. A stream must have as much.
    package var announced: Int? { head.contentLength.map { Int(clamping: $0) } }
}
