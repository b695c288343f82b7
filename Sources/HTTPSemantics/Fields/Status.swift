/// A status code (RFC 9110 §15).
public struct Status: Sendable, Hashable, BitwiseCopyable {
    /// Three digits, 100 to 999; 0 if not yet known.
    public let code: UInt16
    @inlinable public init(_ code: UInt16) { self.code = code }

    /// 1xx: another head follows for the same request (RFC 9110 §15.2).
    @inlinable public var isInformational: Bool { code &- 100 < 100 }
    @inlinable public var isSuccessful: Bool { code >= 200 && code < 300 }
    @inlinable public var isRedirection: Bool { code >= 300 && code < 400 }
    /// 5xx, and the invalid codes from 600 on: a client treats them "as if it had a 5xx" (RFC 9110 §15).
    @inlinable public var isServerError: Bool { code >= 500 }

    /// Whether the status concerns one request or its client, and does not describe the resource for other requests:
    ///
    /// | subject | statuses | source |
    /// | --- | --- | --- |
    /// | the client's credentials | 401, 407 | RFC 9110 §15.5.2, §15.5.8 |
    /// | the client's request rate or network | 429, 511 | RFC 6585 §4, §6 |
    /// | the length of the target or of the fields | 414, 431 | RFC 9110 §15.5.15, RFC 6585 §5 |
    /// | the content, or its absence | 411, 413, 415, 422 | RFC 9110 §15.5.12, §15.5.14, §15.5.16, §15.5.21 |
    /// | a preference, a condition or a range | 406, 412, 416, 417, 426, 428 | RFC 9110 §15.5, RFC 6585 §3 |
    /// | the request's connection | 408, 421, 425 | RFC 9110 §15.5.9, §15.5.20, RFC 8470 §5.2 |
    /// | any other fault of the request | 400, and unregistered 4xx (RFC 9110 §15) | RFC 9110 §15.5.1 |
    public var concernsRequest: Bool {
        switch code {
        case 401, 406, 407, 408, 411, 412, 413, 414, 415, 416, 417, 421, 422, 425, 426, 428, 429, 431, 511: true
        default: isBadRequest
        }
    }

    /// Whether the status concerns a request but may concern the resource as well: for example, a parameter that does
    /// not exist. 400, 422, which some frameworks send for a wrong query, and each unregistered 4xx: "equivalent to the
    /// x00 status code of that class" (RFC 9110 §15).
    public var mayConcernResource: Bool { code == 422 || isBadRequest }

    private var isBadRequest: Bool { code == 400 || code / 100 == 4 && !isRegistered }

    /// The final statuses of RFC 9110 §15 and of RFCs 4918, 5842, 6585, 7725, 8470.
    public var isRegistered: Bool {
        switch code {
        case 200...208, 226, 300...305, 307, 308, 400...417, 421...426, 428, 429, 431, 451, 500...508, 511: true
        default: false
        }
    }

    /// A response with this status has no content, for any request method (RFC 9112 §6.3, 1).
    @inlinable public var forbidsContent: Bool { code < 200 || code == 204 || code == 304 }

    /// RFC 9110 §15, RFC 6585 §5; the names follow the registry.
    public static let `continue` = Status(100)
    public static let switchingProtocols = Status(101)
    public static let ok = Status(200)
    public static let noContent = Status(204)
    public static let partialContent = Status(206)
    public static let notModified = Status(304)
    public static let badRequest = Status(400)
    public static let forbidden = Status(403)
    public static let notFound = Status(404)
    public static let methodNotAllowed = Status(405)
    public static let requestTimeout = Status(408)
    public static let preconditionFailed = Status(412)
    public static let contentTooLarge = Status(413)
    public static let uriTooLong = Status(414)
    public static let rangeNotSatisfiable = Status(416)
    public static let expectationFailed = Status(417)
    public static let misdirectedRequest = Status(421)
    public static let requestHeaderFieldsTooLarge = Status(431)
    public static let notImplemented = Status(501)
    public static let badGateway = Status(502)
    public static let serviceUnavailable = Status(503)
    public static let gatewayTimeout = Status(504)
    public static let versionNotSupported = Status(505)

    /// The registered reason phrase (RFC 9110 §15, RFC 6585, RFC 7725, RFC 8297, RFC 8470); otherwise empty.
    public var reasonPhrase: StaticString {
        switch code {
        case 100: "Continue"
        case 101: "Switching Protocols"
        case 103: "Early Hints"
        case 200: "OK"
        case 201: "Created"
        case 202: "Accepted"
        case 203: "Non-Authoritative Information"
        case 204: "No Content"
        case 205: "Reset Content"
        case 206: "Partial Content"
        case 207: "Multi-Status"
        case 208: "Already Reported"
        case 226: "IM Used"
        case 300: "Multiple Choices"
        case 301: "Moved Permanently"
        case 302: "Found"
        case 303: "See Other"
        case 304: "Not Modified"
        case 305: "Use Proxy"
        case 307: "Temporary Redirect"
        case 308: "Permanent Redirect"
        case 400: "Bad Request"
        case 401: "Unauthorized"
        case 402: "Payment Required"
        case 403: "Forbidden"
        case 404: "Not Found"
        case 405: "Method Not Allowed"
        case 406: "Not Acceptable"
        case 407: "Proxy Authentication Required"
        case 408: "Request Timeout"
        case 409: "Conflict"
        case 410: "Gone"
        case 411: "Length Required"
        case 412: "Precondition Failed"
        case 413: "Content Too Large"
        case 414: "URI Too Long"
        case 415: "Unsupported Media Type"
        case 416: "Range Not Satisfiable"
        case 417: "Expectation Failed"
        case 421: "Misdirected Request"
        case 422: "Unprocessable Content"
        case 423: "Locked"
        case 424: "Failed Dependency"
        case 425: "Too Early"
        case 426: "Upgrade Required"
        case 428: "Precondition Required"
        case 429: "Too Many Requests"
        case 431: "Request Header Fields Too Large"
        case 451: "Unavailable For Legal Reasons"
        case 500: "Internal Server Error"
        case 501: "Not Implemented"
        case 502: "Bad Gateway"
        case 503: "Service Unavailable"
        case 504: "Gateway Timeout"
        case 505: "HTTP Version Not Supported"
        case 506: "Variant Also Negotiates"
        case 507: "Insufficient Storage"
        case 508: "Loop Detected"
        case 511: "Network Authentication Required"
        default: ""
        }
    }
}
