import Bytes

extension KnownField {
    /// The field with this name, in any case; `.other` for a name without a case here.
    ///
    /// The length and a byte or two leave one candidate, which is then compared in full.
    public static func recognise(_ name: Span<UInt8>) -> KnownField {
        let (candidate, lowercase) = candidate(for: name)
        return name.isFieldName(lowercase) ? candidate : .other
    }

    @inline(__always)
    private static func candidate(for name: Span<UInt8>) -> (KnownField, StaticString) {
        switch name.count {
        case 2: (.te, "te")
        case 3:
            switch name[0].lowercasedASCII {
            case UInt8(ascii: "a"): (.age, "age")
            case UInt8(ascii: "v"): (.via, "via")
            default: (.other, "")
            }
        case 4:
            switch name[0].lowercasedASCII {
            case UInt8(ascii: "d"): (.date, "date")
            case UInt8(ascii: "e"): (.etag, "etag")
            case UInt8(ascii: "h"): (.host, "host")
            case UInt8(ascii: "v"): (.vary, "vary")
            default: (.other, "")
            }
        case 5: (.range, "range")
        case 6:
            switch name[0].lowercasedASCII {
            case UInt8(ascii: "a"): (.accept, "accept")
            case UInt8(ascii: "c"): (.cookie, "cookie")
            case UInt8(ascii: "e"): (.expect, "expect")
            case UInt8(ascii: "o"): (.origin, "origin")
            case UInt8(ascii: "p"): (.pragma, "pragma")
            case UInt8(ascii: "s"): (.server, "server")
            default: (.other, "")
            }
        case 7:
            switch name[0].lowercasedASCII {
            case UInt8(ascii: "e"): (.expires, "expires")
            case UInt8(ascii: "r"): (.referer, "referer")
            case UInt8(ascii: "t"): (.trailer, "trailer")
            case UInt8(ascii: "u"): (.upgrade, "upgrade")
            case UInt8(ascii: "w"): (.warning, "warning")
            default: (.other, "")
            }
        case 8:
            switch name[3].lowercasedASCII {
            case UInt8(ascii: "-"): (.cdnLoop, "cdn-loop")
            case UInt8(ascii: "a"): (.location, "location")
            case UInt8(ascii: "m"): (.ifMatch, "if-match")
            case UInt8(ascii: "r"): (.ifRange, "if-range")
            default: (.other, "")
            }
        case 9: (.forwarded, "forwarded")
        case 10:
            switch name[0].lowercasedASCII {
            case UInt8(ascii: "c"): (.connection, "connection")
            case UInt8(ascii: "k"): (.keepAlive, "keep-alive")
            case UInt8(ascii: "s"): (.setCookie, "set-cookie")
            case UInt8(ascii: "u"): (.userAgent, "user-agent")
            default: (.other, "")
            }
        case 11:
            switch name[0].lowercasedASCII {
            case UInt8(ascii: "c"): (.contentMD5, "content-md5")
            case UInt8(ascii: "r"): (.retryAfter, "retry-after")
            default: (.other, "")
            }
        case 12:
            switch name[2].lowercasedASCII {
            case UInt8(ascii: "c"):
                switch name[6].lowercasedASCII {
                case UInt8(ascii: "g"): (.cacheGroups, "cache-groups")
                case UInt8(ascii: "s"): (.cacheStatus, "cache-status")
                default: (.other, "")
                }
            case UInt8(ascii: "n"): (.contentType, "content-type")
            case UInt8(ascii: "o"): (.proxyStatus, "proxy-status")
            case UInt8(ascii: "r"): (.xRequestID, "x-request-id")
            case UInt8(ascii: "x"): (.maxForwards, "max-forwards")
            default: (.other, "")
            }
        case 13:
            switch name[6].lowercasedASCII {
            case UInt8(ascii: "-"): (.acceptRanges, "accept-ranges")
            case UInt8(ascii: "c"): (.cacheControl, "cache-control")
            case UInt8(ascii: "e"): (.ifNoneMatch, "if-none-match")
            case UInt8(ascii: "i"): (.authorization, "authorization")
            case UInt8(ascii: "o"): (.lastModified, "last-modified")
            case UInt8(ascii: "t"): (.contentRange, "content-range")
            default: (.other, "")
            }
        case 14:
            switch name[0].lowercasedASCII {
            case UInt8(ascii: "c"):
                name[8].lowercasedASCII == UInt8(ascii: "l")
                    ? (.contentLength, "content-length") : (.contentDigest, "content-digest")
            case UInt8(ascii: "h"): (.http2Settings, "http2-settings")
            case UInt8(ascii: "n"): (.noVarySearch, "no-vary-search")
            default: (.other, "")
            }
        case 15:
            switch name[7].lowercasedASCII {
            case UInt8(ascii: "e"): (.acceptEncoding, "accept-encoding")
            case UInt8(ascii: "l"): (.acceptLanguage, "accept-language")
            case UInt8(ascii: "r"): (.xForwardedFor, "x-forwarded-for")
            default: (.other, "")
            }
        case 16:
            switch name[8].lowercasedASCII {
            case UInt8(ascii: "d"): (.xForwardedHost, "x-forwarded-host")
            case UInt8(ascii: "e"): (.contentEncoding, "content-encoding")
            case UInt8(ascii: "l"):
                name[9].lowercasedASCII == UInt8(ascii: "o")
                    ? (.contentLocation, "content-location") : (.contentLanguage, "content-language")
            case UInt8(ascii: "n"): (.proxyConnection, "proxy-connection")
            default: (.other, "")
            }
        case 17:
            switch name[0].lowercasedASCII {
            case UInt8(ascii: "c"): (.cdnCacheControl, "cdn-cache-control")
            case UInt8(ascii: "i"): (.ifModifiedSince, "if-modified-since")
            case UInt8(ascii: "t"): (.transferEncoding, "transfer-encoding")
            case UInt8(ascii: "x"): (.xForwardedProto, "x-forwarded-proto")
            default: (.other, "")
            }
        case 18: (.proxyAuthenticate, "proxy-authenticate")
        case 19:
            switch name[0].lowercasedASCII {
            case UInt8(ascii: "i"): (.ifUnmodifiedSince, "if-unmodified-since")
            case UInt8(ascii: "p"): (.proxyAuthorization, "proxy-authorization")
            default: (.other, "")
            }
        case 24: (.cacheGroupInvalidation, "cache-group-invalidation")
        case 25: (.proxyAuthenticationInfo, "proxy-authentication-info")
        default: (.other, "")
        }
    }

    /// The name as its specification writes it; empty for `other`.
    public var wireName: StaticString {
        switch self {
        case .other: ""
        case .connection: "Connection"
        case .contentLength: "Content-Length"
        case .transferEncoding: "Transfer-Encoding"
        case .te: "TE"
        case .trailer: "Trailer"
        case .upgrade: "Upgrade"
        case .expect: "Expect"
        case .keepAlive: "Keep-Alive"
        case .proxyConnection: "Proxy-Connection"
        case .http2Settings: "HTTP2-Settings"
        case .host: "Host"
        case .age: "Age"
        case .cacheControl: "Cache-Control"
        case .cdnCacheControl: "CDN-Cache-Control"
        case .expires: "Expires"
        case .date: "Date"
        case .pragma: "Pragma"
        case .warning: "Warning"
        case .vary: "Vary"
        case .noVarySearch: "No-Vary-Search"
        case .cacheStatus: "Cache-Status"
        case .cacheGroups: "Cache-Groups"
        case .cacheGroupInvalidation: "Cache-Group-Invalidation"
        case .etag: "ETag"
        case .lastModified: "Last-Modified"
        case .ifMatch: "If-Match"
        case .ifNoneMatch: "If-None-Match"
        case .ifModifiedSince: "If-Modified-Since"
        case .ifUnmodifiedSince: "If-Unmodified-Since"
        case .ifRange: "If-Range"
        case .range: "Range"
        case .acceptRanges: "Accept-Ranges"
        case .contentRange: "Content-Range"
        case .contentType: "Content-Type"
        case .contentEncoding: "Content-Encoding"
        case .contentLanguage: "Content-Language"
        case .contentLocation: "Content-Location"
        case .contentDigest: "Content-Digest"
        case .contentMD5: "Content-MD5"
        case .location: "Location"
        case .authorization: "Authorization"
        case .proxyAuthorization: "Proxy-Authorization"
        case .proxyAuthenticate: "Proxy-Authenticate"
        case .proxyAuthenticationInfo: "Proxy-Authentication-Info"
        case .setCookie: "Set-Cookie"
        case .cookie: "Cookie"
        case .via: "Via"
        case .cdnLoop: "CDN-Loop"
        case .forwarded: "Forwarded"
        case .xForwardedFor: "X-Forwarded-For"
        case .xForwardedProto: "X-Forwarded-Proto"
        case .xForwardedHost: "X-Forwarded-Host"
        case .proxyStatus: "Proxy-Status"
        case .maxForwards: "Max-Forwards"
        case .retryAfter: "Retry-After"
        case .server: "Server"
        case .xRequestID: "X-Request-Id"
        case .accept: "Accept"
        case .acceptEncoding: "Accept-Encoding"
        case .acceptLanguage: "Accept-Language"
        case .userAgent: "User-Agent"
        case .referer: "Referer"
        case .origin: "Origin"
        }
    }
}
