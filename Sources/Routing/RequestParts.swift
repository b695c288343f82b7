import Bytes
public import HTTPSemantics

/// The parts of a request, and of the response to it, that the variables of a `Template` stand for. Read in place: made
/// where a template is written, and not kept.
public struct RequestParts: ~Escapable {
    private let fields: FieldView
    private let authority: ByteRange
    private let path: ByteRange
    private let query: ByteRange
    private let hasQuery: Bool
    private let scheme: ClientScheme
    private let client: Span<UInt8>
    private let madeID: RequestID
    /// The status of the response, and how the cache answered; until there is a response, 0 and empty.
    let status: Status
    private let cache: StaticString

    /// - Parameters:
    ///   - fields: of the request, with the bytes of `head`.
    ///   - client: the client's address, as the access log shows it.
    ///   - madeID: the request's identifier if its client gave it no valid one.
    ///   - cache: the name of the response's verdict.
    @_lifetime(copy fields, copy client)
    public init(
        _ head: borrowing RequestHead, _ fields: FieldView, _ scheme: ClientScheme, client: Span<UInt8>,
        madeID: RequestID, status: Status = Status(0), cache: StaticString = ""
    ) {
        self.fields = fields
        authority = head.authority
        path = head.target.path
        query = head.target.query
        hasQuery = head.target.hasQuery
        self.scheme = scheme
        self.client = client
        self.madeID = madeID
        self.status = status
        self.cache = cache
    }

    func write(_ variable: Template.Variable, to buffer: ByteBuffer) {
        let bytes = fields.bytes
        switch variable {
        case .host: buffer.append(percentEncoding: bytes.extracting(authority.range).hostPart)
        case .path: writePath(to: buffer)
        case .query: buffer.append(percentEncoding: bytes.extracting(query.range))
        case .target:
            writePath(to: buffer)
            guard hasQuery else { break }
            buffer.append("?")
            buffer.append(percentEncoding: bytes.extracting(query.range))
        case .scheme: buffer.append(scheme.name)
        case .client: buffer.append(percentEncoding: client)
        case .requestID: if let id = fields.requestID { buffer.append(id) } else { buffer.append(madeID) }
        case .status: if status.code != 0 { buffer.append(decimal: UInt64(status.code)) }
        case .cache: buffer.append(cache)
        }
    }

    /// An absolute target may come without a path, which means the root (RFC 9110 §4.2.3).
    private func writePath(to buffer: ByteBuffer) {
        if path.count == 0 { buffer.append("/") }
        buffer.append(percentEncoding: fields.bytes.extracting(path.range))
    }
}

extension ByteBuffer {
    /// Appends `text` with every byte but visible ASCII percent-encoded (RFC 3986 §2.1), so that it is one word of a
    /// field value (RFC 9110 §5.5).
    fileprivate func append(percentEncoding text: Span<UInt8>) {
        for index in 0..<text.count {
            let byte = text[index]
            guard byte <= 0x20 || byte >= 0x7f else {
                append(byte)
                continue
            }
            append("%")
            append(Self.digit(byte >> 4))
            append(Self.digit(byte & 15))
        }
    }

    /// RFC 3986 §2.1: upper case.
    private static func digit(_ value: UInt8) -> UInt8 { value < 10 ? 0x30 + value : 0x37 + value }
}
