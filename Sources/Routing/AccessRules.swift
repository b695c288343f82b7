public import Bytes
public import HTTPSemantics
public import Libevent

/// How often the clients of a route may ask.
package struct RateLimitSettings: Sendable, Hashable {
    /// How many requests, in the long run.
    package var rate = RequestRate(1, per: .second)
    /// Requests at once; `nil`: as many as `rate` allows in its period.
    package var burst: Int?
    /// The name of the request field whose values are counted apart; `nil`: clients are, by their addresses. A request
    /// without the field is not limited.
    package var field: String?

    /// One request a second.
    package init() {}

    fileprivate var mostAtOnce: Int { burst ?? rate.requests }
    fileprivate var bucket: TokenBucket { TokenBucket(rate, burst: mostAtOnce) }
}

/// Which clients may use a route, and how often. Immutable; applied to each request before it is answered, so that hits
/// count, too. A request that an origin may take for one of another route, since paths have other spellings, must obey
/// the rules of both (`LoopSettings.routesOfOtherSpellings`).
public final class AccessRules: Sendable {
    /// Why a request is refused.
    public enum Refusal: Sendable, Equatable {
        /// 403: the client is in `deny`, or is not in `allow`.
        case denied
        /// 429: the client's bucket is empty for so many nanoseconds.
        case limited(Int64)
    }

    /// `nil`: all.
    private let allowed: AddressSet?
    private let denied: AddressSet
    private let bucket: TokenBucket?
    private let field: ByteSlice?
    /// Tells the buckets of this limit from those of others; the same after a reload that does not change the limit.
    private let number: UInt64
    /// The line `RateLimit-Policy`; empty if there is no limit.
    private let policyLine: ByteSlice

    /// `nil` if the route has no such rules.
    init?(_ settings: RouteSettings) {
        guard settings.hasAccessRules else { return nil }
        allowed = settings.allow.isEmpty ? nil : AddressSet(settings.allow)
        denied = AddressSet(settings.deny)
        bucket = settings.rateLimit?.bucket
        field = settings.rateLimit?.field.map { ByteSlice($0) }
        let scheme = settings.scheme.map { "\($0.name) " } ?? ""
        let place = "\(scheme)\(settings.host?.text ?? "") \(settings.path) \(settings.rateLimit.map { "\($0)" } ?? "")"
        number = RunningHash.of(Array(place.utf8))
        policyLine =
            settings.rateLimit.map { limit in
                // The burst, and the time in which it comes back; the rate, if that time is no whole number of seconds.
                let (requests, period) = (limit.rate.requests, limit.rate.period.rawValue)
                let (time, rest) = (limit.mostAtOnce * period).quotientAndRemainder(dividingBy: requests)
                let (quota, window) = rest == 0 ? (limit.mostAtOnce, time) : (requests, period)
                return ByteSlice("RateLimit-Policy: \"requests\";q=\(quota);w=\(window)\r\n")
            } ?? .empty
    }

    /// Whether a client is refused; takes a token from its bucket if it is not. Allocates nothing.
    /// - Parameters:
    ///   - client: `nil` for a client of a Unix socket.
    ///   - now: nanoseconds of the loop's clock.
    public func refusal(
        of client: IPAddress?, _ fields: FieldView, _ limiter: RateLimiter, hash: KeyedHash, at now: Int64
    ) -> Refusal? {
        if denied.contains(client) || allowed?.contains(client) == false { return .denied }
        guard let bucket else { return nil }
        let owner: UInt64
        if let field {
            let name = field
            guard let line = fields.firstIndex(named: name.span) else { return nil }
            owner = hash.hash(hash.hash(fields.value(at: line)), 0, number)
        } else {
            owner = client?.ofClient.hash(with: number, under: hash) ?? hash.hash(0, 0, number)
        }
        let wait = limiter.take(from: owner, bucket, at: now)
        return wait > 0 ? .limited(wait) : nil
    }

    /// The field lines of a 429: `Retry-After` (RFC 9110 §10.2.3), `RateLimit-Policy` and `RateLimit`
    /// (draft-ietf-httpapi-ratelimit-headers-10).
    /// - Parameter wait: nanoseconds until there is a token.
    public func lines(ofRefusalFor wait: Int64) -> ByteSlice {
        let seconds = UInt64(Self.seconds(wait))
        let lines = ByteBuffer(capacity: 160)
        lines.appendField("Retry-After", seconds)
        lines.append(policyLine)
        lines.append("RateLimit: \"requests\";r=0;t=")
        lines.append(decimal: seconds)
        lines.appendLineEnd()
        return lines.copied()
    }

    /// Whole seconds, at least 1.
    private static func seconds(_ nanoseconds: Int64) -> Int64 { max(1, (nanoseconds + 999_999_999) / 1_000_000_000) }
}
