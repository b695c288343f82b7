import Bytes
import HTTPSemantics
import Routing
import Storage
import Testing
import Upstream

@testable import Proxy

/// What is stored, times what a request says, gives what is done for it: the rules of RFC 9111 §4 in one place. Each
/// row is one promise; the words of a verdict are those of `verdict(of:)` below.
@Suite struct LookupTests {
    typealias Known = World.Known

    struct Row: Sendable, CustomTestStringConvertible {
        let request: String
        let verdict: String
        let known: [Known]
        let age: Int64
        let changes: [World.Change]

        init(
            _ request: String, _ verdict: String, _ known: Known..., age: Int64 = 10, where changes: [World.Change] = []
        ) {
            (self.request, self.verdict, self.known, self.age, self.changes) = (request, verdict, known, age, changes)
        }

        /// Rows in which these reasons were found out one after another, in either order.
        static func both(
            _ one: NotSharedReason, _ other: NotSharedReason, _ known: Known..., gives verdicts: [(String, String)]
        ) -> [Row] {
            verdicts.flatMap { request, verdict in
                [[one, other], [other, one]].map { reasons in
                    Row(request, verdict, known: known + reasons.map { .marker($0) })
                }
            }
        }

        private init(_ request: String, _ verdict: String, known: [Known]) {
            (self.request, self.verdict, self.known, age, changes) = (request, verdict, known, 10, [])
        }

        var testDescription: String { "\(request) → \(verdict)" }
    }

    private static let fresh = Known.response("Cache-Control: max-age=60")
    private static let german = Known.variant(
        "Cache-Control: max-age=60\nVary: accept-language", by: "Accept-Language: de")
    private static let beginning = Known.part(0..<100, of: 1_000, "Cache-Control: max-age=60\nETag: \"a\"")

    static let nothingStored: [Row] = [
        Row("GET /x", "get uri-miss"),
        Row("GET /x\nAuthorization: Basic eA==", "authorized get uri-miss"),
        Row("HEAD /x", "head uri-miss"),
        Row("GET /x\nRange: bytes=0-9", "get uri-miss"),
        Row("GET /x\nIf-None-Match: \"a\"", "get uri-miss"),
        Row("GET /x\nCache-Control: no-cache", "get uri-miss"),
        Row("GET /x\nCache-Control: max-age=0", "get uri-miss"),
        Row("GET /x\nCache-Control: only-if-cached", "504"),
        // What nobody else may have, or no other request's answer would do for.
        Row("GET /x\nCache-Control: no-store", "alone request, as it came"),
        Row("GET /x\nCache-Control: no-store, only-if-cached", "504"),
        Row("GET /x\nContent-Length: 5", "alone bypass, as it came"),
        Row("GET /x\nIf-Match: \"a\"", "alone bypass, as it came"),
        Row("GET /x\nIf-Unmodified-Since: Sun, 06 Nov 1994 08:49:37 GMT", "alone bypass, as it came"),
        Row("GET /x\nConnection: upgrade\nUpgrade: websocket", "alone bypass, as it came"),
        Row("GET /x\nIf-Match: \"a\"\nCache-Control: only-if-cached", "504"),
        Row("POST /x\nContent-Length: 0", "alone method, as it came"),
        Row("OPTIONS /x", "alone method, as it came"),
        Row("POST /x\nCache-Control: only-if-cached", "alone method, as it came"),
        // What the operator says.
        Row("GET /x", "alone uri-miss", where: [.coalescingOff]),
        Row("GET /x", "alone uri-miss", where: [.sharingGivenUp]),
        Row("GET /x\nCache-Control: only-if-cached", "504", where: [.ignoresDirectives]),
        Row("GET /x", "get bypass", where: [.notCached]),
        Row("GET /x", "get bypass", fresh, where: [.notCached]),
        Row("HEAD /x", "head bypass", fresh, where: [.notCached]),
        Row("GET /x\nRange: bytes=0-9", "get bypass", where: [.notCached]),
        Row("GET /x\nCache-Control: max-stale", "get bypass", fresh, age: 100, where: [.notCached]),
        Row("GET /x\nCache-Control: no-store", "alone request, as it came", where: [.notCached]),
        // Neither stored nor shared: nothing to look up.
        Row("GET /x", "alone bypass, as it came", where: [.notCached, .coalescingOff]),
        Row("GET /x\nRange: bytes=0-9", "alone bypass, as it came", where: [.notCached, .coalescingOff]),
        Row("GET /x\nIf-None-Match: \"a\"", "alone bypass, as it came", fresh, where: [.notCached, .coalescingOff]),
        Row(
            "GET /x\nRange: bytes=0-9", "alone bypass, as it came", .marker(.range),
            where: [.notCached, .coalescingOff, .asksForParts]),
        Row("GET /x\nCache-Control: only-if-cached", "504", fresh, where: [.notCached, .coalescingOff]),
        Row("POST /x\nContent-Length: 0", "alone method, as it came", where: [.notCached, .coalescingOff]),
        Row("GET /x", "alone bypass, as it came", where: [.notCached, .sharingGivenUp]),
    ]

    static let freshStored: [Row] = [
        Row("GET /x", "serve, fresh", fresh),
        Row("HEAD /x", "serve, fresh", fresh),
        Row("GET /x\nAuthorization: Basic eA==", "serve, fresh", fresh),
        Row("GET /x\nRange: bytes=0-9", "serve, fresh", fresh),
        Row("GET /x\nCache-Control: only-if-cached", "serve, fresh", fresh),
        Row("GET /x\nCache-Control: no-store", "serve, fresh", fresh),
        Row("GET /x\nCache-Control: max-age=10", "serve, fresh", fresh),
        Row("GET /x\nCache-Control: min-fresh=50", "serve, fresh", fresh),
        Row("GET /x", "serve, fresh", fresh, age: 59),
        Row("POST /x\nContent-Length: 0", "alone method, as it came", fresh),
        Row("GET /x\nIf-Match: \"a\"", "alone bypass, as it came", fresh),
        Row("GET /x\nCache-Control: no-transform", "serve, fresh", fresh),
        // §5.2.1: the client wants another one.
        Row("GET /x\nCache-Control: no-cache", "get request, with what is stored", fresh),
        Row("GET /x\nPragma: no-cache", "get request, with what is stored", fresh),
        Row("GET /x\nCache-Control: max-age=9", "get request, with what is stored", fresh),
        Row("GET /x\nCache-Control: min-fresh=51", "get request, with what is stored", fresh),
        Row("HEAD /x\nCache-Control: no-cache", "head request, with what is stored", fresh),
        Row("GET /x\nCache-Control: no-cache, no-store", "alone request, as it came", fresh),
        Row("GET /x\nCache-Control: no-cache, only-if-cached", "504", fresh),
        Row("GET /x\nCache-Control: no-cache", "serve, fresh", fresh, where: [.ignoresDirectives]),
        // §5.2.2.4: by each request.
        Row("GET /x", "alone stale, with what is stored", .response("Cache-Control: max-age=60, no-cache")),
        Row("GET /x\nCache-Control: only-if-cached", "504", .response("Cache-Control: max-age=60, no-cache")),
        // RFC 9875 §3.
        Row(
            "GET /x", "get stale, with what is stored", .response("Cache-Control: max-age=60\nCache-Groups: \"g\""),
            .invalidated(group: "g")),
        Row(
            "GET /x", "serve, fresh", .response("Cache-Control: max-age=60\nCache-Groups: \"g\""),
            .invalidated(group: "h")),
    ]

    private static let session = "\nCookie: a=b; session=1"
    static let passed: [Row] = [
        Row("GET /x\(session)", "alone bypass, as it came", where: [.passesSessions]),
        Row("GET /x\(session)", "alone bypass, as it came", fresh, where: [.passesSessions]),
        Row("HEAD /x\(session)", "alone bypass, as it came", fresh, where: [.passesSessions]),
        Row("POST /x\nContent-Length: 0\(session)", "alone method, as it came", fresh, where: [.passesSessions]),
        Row("GET /x\nRange: bytes=0-9\(session)", "alone bypass, as it came", beginning, where: [.passesSessions]),
        Row("GET /x\nRange: bytes=50-149\(session)", "alone bypass, as it came", beginning, where: [.passesSessions]),
        Row("GET /x\nIf-None-Match: \"a\"\(session)", "alone bypass, as it came", fresh, where: [.passesSessions]),
        // Without a stand-in.
        Row("GET /x\(session)", "alone bypass, as it came", fresh, age: 100, where: [.passesSessions]),
        Row("GET /x\nCache-Control: max-stale\(session)", "alone bypass, as it came", fresh, where: [.passesSessions]),
        Row("GET /x\nCache-Control: only-if-cached\(session)", "504", fresh, where: [.passesSessions]),
        Row("GET /x\(session)", "alone bypass, as it came", where: [.passesSessions, .notCached]),
        Row("GET /x\nCookie: a=session; sessions=1", "serve, fresh", fresh, where: [.passesSessions]),
        Row("GET /x", "serve, fresh", fresh, where: [.passesSessions]),
        Row("GET /x\(session)", "serve, fresh", fresh),
    ]

    static let staleStored: [Row] = [
        Row("GET /x", "get stale, with what is stored", fresh, age: 60),
        Row("GET /x", "get stale, with what is stored", fresh, age: 100),
        Row("HEAD /x", "head stale, with what is stored", fresh, age: 100),
        Row("GET /x\nAuthorization: Basic eA==", "authorized get stale, with what is stored", fresh, age: 100),
        Row("GET /x\nCache-Control: only-if-cached", "504", fresh, age: 100),
        Row("GET /x", "alone stale, with what is stored", fresh, age: 100, where: [.coalescingOff]),
        // RFC 9211 §2.2: `request` is for what is fresh, and not wanted.
        Row("GET /x\nCache-Control: no-transform", "get stale, with what is stored", fresh, age: 100),
        Row("GET /x\nCache-Control: max-stale=39", "get stale, with what is stored", fresh, age: 100),
        // §5.2.1.2
        Row("GET /x\nCache-Control: max-stale", "serve, stale", fresh, age: 100),
        Row("GET /x\nCache-Control: max-stale=40", "serve, stale", fresh, age: 100),
        Row("GET /x\nCache-Control: max-stale, only-if-cached", "serve, stale", fresh, age: 100),
        Row("GET /x\nCache-Control: max-stale=39, only-if-cached", "504", fresh, age: 100),
        Row("GET /x\nCache-Control: max-stale", "serve, stale", fresh, age: 100, where: [.ignoresDirectives]),
        Row(
            "GET /x\nCache-Control: max-stale, only-if-cached", "504",
            .response("Cache-Control: max-age=60, must-revalidate"), age: 100),
        Row(
            "GET /x\nCache-Control: max-stale, only-if-cached", "504", .response("Cache-Control: s-maxage=60"), age: 100
        ),
        // RFC 5861 §3
        Row(
            "GET /x", "serve, stale, and refresh", .response("Cache-Control: max-age=60, stale-while-revalidate=40"),
            age: 100),
        Row(
            "GET /x", "get stale, with what is stored",
            .response("Cache-Control: max-age=60, stale-while-revalidate=39"), age: 100),
        Row(
            "GET /x\nCache-Control: max-age=1000, only-if-cached", "504",
            .response("Cache-Control: max-age=60, stale-while-revalidate=40"), age: 100),
    ]

    static let variants: [Row] = [
        Row("GET /x\nAccept-Language: de", "serve, fresh", german),
        Row("GET /x\nAccept-Language: en", "get vary-miss, a variant", german),
        Row("GET /x", "get vary-miss, a variant", german),
        Row("GET /x\nAccept-Language: de", "get stale, a variant, with what is stored", german, age: 100),
        Row("GET /x\nAccept-Language: de", "get uri-miss, a variant", .vary("accept-language")),
        Row("GET /x\nAccept-Language: en\nCache-Control: only-if-cached", "504", german),
    ]

    /// What was found out not to be shareable is not waited for.
    static let marked: [Row] = [
        Row("GET /x", "alone bypass, as it came", .marker(.prohibited(.setCookie))),
        Row("GET /x", "get uri-miss", .marker(.prohibited(.setCookie)), age: 61),
        Row("GET /x\nCache-Control: only-if-cached", "504", .marker(.prohibited(.setCookie))),
        Row("GET /x\nAuthorization: Basic eA==", "alone bypass, as it came", .marker(.prohibited(.authorization))),
        Row("GET /x", "get uri-miss", .marker(.prohibited(.authorization))),
        Row(
            "GET /x", "alone bypass, as it came, with a stand-in", .response("Cache-Control: max-age=30"),
            .marker(.prohibited(.private)), age: 40),
        Row("GET /x", "serve, fresh", fresh, .marker(.prohibited(.private))),
        Row("GET /x", "alone bypass, as it came", .marker(.noCache)),
        Row("GET /x", "alone stale, with what is stored", .response("Cache-Control: no-cache"), .marker(.noCache)),
        Row("GET /x", "alone bypass, as it came", .marker(.search)),
        Row("GET /x", "get uri-miss", .marker(.range)),
        Row("GET /x\nRange: bytes=0-9,20-29", "alone bypass, as it came", .marker(.range)),
        Row("HEAD /x\nRange: bytes=0-9", "head uri-miss", .marker(.range)),
    ]

    private static let authorization = NotSharedReason.prohibited(.authorization)
    private static let stale = Known.response("Cache-Control: max-age=0, public\nETag: \"a\"")

    /// Each speaks of its own requests; where two speak of one, one has the word.
    static let markedTwice: [Row] =
        Row.both(
            authorization, .unlike,
            gives: [
                ("GET /x\nAuthorization: Basic eA==", "alone bypass, as it came"),
                ("GET /x\nAuthorization: Basic eA==\nCookie: a=b", "alone bypass, as it came"),
                ("GET /x\nCookie: a=b", "get uri-miss, a variant"), ("GET /x", "get uri-miss"),
            ])
        + Row.both(
            .range, .unlike,
            gives: [
                ("GET /x\nRange: bytes=0-9\nCookie: a=b", "part 0-9 uri-miss, a variant"),
                ("GET /x\nRange: bytes=0-9", "part 0-9 uri-miss"),
                ("GET /x\nCookie: a=b", "get uri-miss, a variant"), ("GET /x", "get uri-miss"),
            ])
        + Row.both(
            .range, authorization,
            gives: [
                ("GET /x\nRange: bytes=0-9", "part 0-9 uri-miss"),
                ("GET /x\nRange: bytes=0-9\nAuthorization: Basic eA==", "alone bypass, as it came"),
            ])
        + Row.both(
            .prohibited(.private), .unlike,
            gives: [("GET /x\nCookie: a=b", "alone bypass, as it came"), ("GET /x", "alone bypass, as it came")])
        + Row.both(.part, .range, gives: [("GET /x\nRange: bytes=0-9", "alone bypass, as it came")])
        + Row.both(.search, .range, gives: [("GET /x\nRange: bytes=0-9", "alone bypass, as it came")])
        + Row.both(
            .prohibited(.private), authorization, stale,
            gives: [
                ("GET /x", "alone bypass, as it came, with a stand-in"),
                ("GET /x\nAuthorization: Basic eA==", "alone bypass, as it came, with a stand-in"),
            ])
        + Row.both(
            .noCache, authorization, stale,
            gives: [
                ("GET /x", "alone stale, with what is stored"),
                ("GET /x\nAuthorization: Basic eA==", "alone stale, with what is stored"),
            ])
        + Row.both(
            authorization, .unlike, stale,
            gives: [
                ("GET /x", "get stale, with what is stored"),
                ("GET /x\nAuthorization: Basic eA==", "alone stale, with what is stored"),
            ])
        + Row.both(.search, .noCache, stale, gives: [("GET /x", "alone bypass, as it came, with a stand-in")])

    static let parts: [Row] = [
        // Nothing stored, where the operator or what was found out says that wholes are too large.
        Row("GET /x\nRange: bytes=0-9", "part 0-9 uri-miss", where: [.asksForParts]),
        Row("GET /x\nRange: bytes=0-9", "part 0-9 uri-miss", .marker(.range)),
        Row(
            "GET /x\nRange: bytes=0-9\nAuthorization: Basic eA==", "authorized part 0-9 uri-miss",
            where: [.asksForParts]),
        Row("GET /x\nRange: bytes=5-", "part 5- uri-miss", where: [.asksForParts]),
        Row("GET /x\nRange: bytes=-5", "part -5 uri-miss", where: [.asksForParts]),
        Row("GET /x", "get uri-miss", where: [.asksForParts]),
        Row("HEAD /x\nRange: bytes=0-9", "head uri-miss", where: [.asksForParts]),
        Row("GET /x\nRange: bytes=0-9,20-29", "get uri-miss", where: [.asksForParts]),
        Row("GET /x\nRange: bytes=0-9\nIf-Range: \"a\"", "get uri-miss", where: [.asksForParts]),
        Row("GET /x\nRange: bytes=0-9", "alone uri-miss, of a part", where: [.asksForParts, .coalescingOff]),
        Row("GET /x\nRange: bytes=0-9", "alone uri-miss, of a part", .marker(.range), where: [.coalescingOff]),
        Row("GET /x\nRange: bytes=0-9", "alone uri-miss", where: [.coalescingOff]),
        Row("GET /x\nRange: bytes=0-9", "alone uri-miss", where: [.asksForParts, .sharingGivenUp]),
        Row("GET /x\nRange: bytes=0-9", "get bypass", where: [.asksForParts, .notCached]),
        Row("GET /x\nRange: bytes=0-9", "get uri-miss", where: [.asksForParts, .noRanges]),
        Row("GET /x\nRange: bytes=0-9", "get uri-miss", .marker(.range), where: [.noRanges]),
        Row("GET /x\nRange: bytes=0-9\nCache-Control: only-if-cached", "504", where: [.asksForParts]),
        // The first hundred of a thousand bytes stored.
        Row("GET /x\nRange: bytes=0-9", "serve, fresh", beginning),
        Row("GET /x\nRange: bytes=0-9,20-29", "serve, fresh", beginning),
        Row("GET /x\nRange: bytes=2000-", "serve, fresh", beginning),
        Row("GET /x\nRange: bytes=50-149", "part 100-149 partial, with parts", beginning),
        Row("GET /x\nRange: bytes=500-", "part 500- partial, with parts", beginning),
        Row("GET /x", "part 100- partial, with parts", beginning),
        Row("GET /x\nRange: bytes=0-9,200-209", "get uri-miss", beginning),
        Row("HEAD /x", "head uri-miss", beginning),
        Row("GET /x\nRange: bytes=50-149\nCache-Control: only-if-cached", "504", beginning),
        Row("GET /x\nRange: bytes=0-9\nCache-Control: only-if-cached", "serve, fresh", beginning),
        Row("GET /x\nRange: bytes=0-9\nCache-Control: no-store", "alone request, as it came", beginning),
        Row(
            "GET /x\nRange: bytes=0-9\nCache-Control: no-cache", "part 0-9 request, with what is stored, with parts",
            beginning),
        Row("GET /x\nRange: bytes=0-9", "part 0-9 stale, with what is stored, with parts", beginning, age: 100),
        Row("GET /x\nRange: bytes=0-9\nCache-Control: only-if-cached", "504", beginning, age: 100),
        Row("GET /x\nRange: bytes=0-9,20-29", "get uri-miss", beginning, age: 100),
        Row("GET /x\nRange: bytes=0-9\nCache-Control: max-stale", "serve, stale", beginning, age: 100),
        Row("GET /x\nRange: bytes=50-149", "alone partial, with parts", beginning, where: [.coalescingOff]),
        Row("GET /x\nRange: bytes=50-149", "alone uri-miss", beginning, where: [.sharingGivenUp]),
        Row("GET /x\nRange: bytes=0-9", "get bypass", beginning, where: [.notCached]),
        // What is there is used whatever was found out since; more is not asked for.
        Row("GET /x\nRange: bytes=0-9", "serve, fresh", beginning, .marker(.prohibited(.setCookie))),
        Row(
            "GET /x\nRange: bytes=0-9\nAuthorization: Basic eA==", "serve, fresh", beginning,
            .marker(.prohibited(.authorization))),
        Row("GET /x\nRange: bytes=50-149", "alone bypass, as it came", beginning, .marker(.prohibited(.setCookie))),
        Row(
            "GET /x\nRange: bytes=0-9\nCache-Control: no-cache", "alone bypass, as it came", beginning,
            .marker(.prohibited(.setCookie))),
    ]

    @Test(arguments: nothingStored) func `nothing stored gives the listed verdict`(_ row: Row) throws { try look(row) }
    @Test(arguments: freshStored) func `a fresh response gives the listed verdict`(_ row: Row) throws { try look(row) }
    @Test(arguments: passed) func `a pass cookie gives the listed verdict`(_ row: Row) throws { try look(row) }
    @Test(arguments: staleStored) func `a stale response gives the listed verdict`(_ row: Row) throws { try look(row) }
    @Test(arguments: variants) func `stored variants give the listed verdict`(_ row: Row) throws { try look(row) }
    @Test(arguments: marked) func `a marked key gives the listed verdict`(_ row: Row) throws { try look(row) }
    @Test(arguments: markedTwice) func `two markers give the listed verdict`(_ row: Row) throws { try look(row) }
    @Test(arguments: parts) func `ranges and parts give the listed verdict`(_ row: Row) throws { try look(row) }

    private func look(_ row: Row) throws {
        let world = World(row.changes)
        let request = try world.request(row.request)
        for known in row.known { try world.learn(known, of: request) }
        let verdict = Self.verdict(of: world.lookUp(request, after: row.age))
        #expect(verdict == row.verdict)
    }

    private static func verdict(of outcome: Lookup.Outcome) -> String {
        switch outcome {
        case .serve(_, .fresh, refreshes: false): return "serve, fresh"
        case .serve(_, .staleAccepted, refreshes: false): return "serve, stale"
        case .serve(_, .staleWhileRevalidate, refreshes: true): return "serve, stale, and refresh"
        case .serve(_, let reuse, let refreshes): return "serve as \(reuse), refreshes: \(refreshes)"
        case .notStored: return "504"
        case .fetch(let plan):
            let kind =
                switch plan.key.kind {
                case .get(let isAuthorized): (isAuthorized ? "authorized " : "") + "get"
                case .head: "head"
                case .part(let range, isAuthorized: let isAuthorized):
                    (isAuthorized ? "authorized " : "") + "part \(Self.text(range))"
                case .anyPart: "any part"
                case .unshared: "alone"
                }
            return "\(kind) \(plan.reason.token)" + (plan.key.variant == nil ? "" : ", a variant")
                + (plan.isPass ? ", as it came" : "")
                + (plan.stored != nil ? ", with what is stored" : plan.hasStandIn ? ", with a stand-in" : "")
                + (plan.parts == nil ? "" : ", with parts")
                + (plan.key.kind == .unshared && plan.range != nil && plan.parts == nil ? ", of a part" : "")
        }
    }

    private static func text(_ range: ByteRangeSpec) -> String {
        switch range {
        case .from(let first): "\(first)-"
        case .between(let first, let last): "\(first)-\(last)"
        case .last(let count): "-\(count)"
        }
    }
}
