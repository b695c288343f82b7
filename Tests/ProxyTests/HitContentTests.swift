import Bytes
import HTTPSemantics
import Libevent
import RouteTesting
import Routing
import Storage
import Telemetry
import Testing

@testable import Proxy

/// The hot path puts a response together by itself, for speed. Each row is one promise: what it sends is, byte for
/// byte, what an `Answer` would be; or it leaves the request to a transaction.
@Suite struct HitContentTests {
    struct Row: Sendable, CustomTestStringConvertible {
        let fields: String
        /// What becomes of the request where a page of ten bytes is stored: the status of a plain hit; `nil`: a
        /// transaction decides.
        let status: UInt16?
        let maxRanges: Int

        init(_ fields: String, _ status: UInt16?, maxRanges: Int = 16) {
            (self.fields, self.status, self.maxRanges) = (fields, status, maxRanges)
        }

        var testDescription: String { "\(fields) → \(status.map(String.init) ?? "a transaction")" }
    }

    static let rows: [Row] = [
        Row("Accept: */*", 200),
        // RFC 9110 §13.1.2, §13.1.3
        Row("If-None-Match: \"a\"", 304),
        Row("If-None-Match: W/\"a\"", 304),
        Row("If-None-Match: \"b\", \"a\"", 304),
        Row("If-None-Match: *", 304),
        Row("If-None-Match: \"b\"", 200),
        Row("If-Modified-Since: Sun, 06 Nov 1994 08:00:00 GMT", 304),
        Row("If-Modified-Since: Sun, 06 Nov 1994 07:59:59 GMT", 200),
        Row("If-Modified-Since: yesterday", 200),
        Row("If-None-Match: \"b\"\nIf-Modified-Since: Sun, 06 Nov 1994 08:00:00 GMT", 200),
        // §14.2
        Row("Range: bytes=0-4", 206),
        Row("Range: bytes=5-", 206),
        Row("Range: bytes=-3", 206),
        Row("Range: bytes=0-", 206),
        Row("Range: bytes=8-20", 206),
        Row("Range: bytes=-20", 206),
        Row("Range: BYTES=0-4", 206),
        Row("Range: bytes=10-", nil),
        Row("Range: bytes=-0", nil),
        Row("Range: bytes=4-2", nil),
        Row("Range: bytes=0-1,3-4", nil),
        Row("Range: bytes=0-1\nRange: bytes=3-4", nil),
        Row("Range: lines=0-4", nil),
        Row("Range: bytes=0-4", nil, maxRanges: 0),
        Row("Range: bytes=0-4", 206, maxRanges: 1),
        Row("If-None-Match: \"a\"\nRange: bytes=0-4", 304),
        Row("If-None-Match: \"b\"\nRange: bytes=0-4", 206),
        // §13.1.5, and what else is no plain hit whatever is stored.
        Row("If-Range: \"a\"\nRange: bytes=0-4", nil),
        Row("If-Match: \"a\"", nil),
        Row("TE: trailers", nil),
    ]

    /// One representation or answer, as it may be stored.
    struct Sample: Sendable, CustomTestStringConvertible {
        let status: Status
        let body: String
        let isPacked: Bool
        var moreFields = ""

        var testDescription: String {
            "\(status.code), \(body.utf8.count) bytes, \(isPacked ? "packed" : "loose")\(moreFields.isEmpty ? "" : ", \(moreFields)")"
        }
    }

    static let samples: [Sample] = [true, false].flatMap { isPacked in
        [
            Sample(status: .ok, body: "0123456789", isPacked: isPacked),
            Sample(status: .ok, body: "", isPacked: isPacked),
            // In units of its own (§14.4).
            Sample(status: .ok, body: "0123456789", isPacked: isPacked, moreFields: "Content-Range: items 0-4/12\n"),
            // Of all of the content (RFC 9530 §2), and of the representation (§3).
            Sample(
                status: .ok, body: "0123456789", isPacked: isPacked,
                moreFields: "Content-Digest: d=:a:\nContent-MD5: a\nRepr-Digest: d=:a:\n"),
            Sample(status: .noContent, body: "", isPacked: isPacked),
            Sample(status: .notFound, body: "0123456789", isPacked: isPacked),
            Sample(status: Status(301), body: "0123456789", isPacked: isPacked),
        ]
    }

    private let settings = LoopSettings(upstreams: "one")
    private let now = arrival.after(10)

    @Test(arguments: rows, samples) func `a plain hit sends the same bytes as an Answer`(_ row: Row, _ sample: Sample)
        throws
    {
        let (stored, request) = (try stored(sample), try request(row.fields))
        let fields = request.fields
        let length = try #require(stored.bodyLength)
        let isPlain = fields.present.isDisjoint(with: .notOfPlainHits)
        let hit =
            isPlain ? Answer(hit: stored, length: length, for: fields.view, maxRanges: row.maxRanges) : nil
        if sample.status == .ok, length == 10 { #expect(hit?.status.code == row.status) }
        guard let hit else { return }
        let answer = Answer(request, stored, length: length, isPassedThrough: false, maxRanges: row.maxRanges)
        #expect(hit.status == answer.status)
        let (sent, expected) = (try bytes(ofHit: hit, stored), try bytes(of: answer, stored))
        #expect(sent == expected)
    }

    /// As `HitPath` sends it.
    private func bytes(ofHit hit: Answer, _ stored: StoredResponse) throws -> String {
        let (age, timeToLive) = try fresh(stored)
        let out = ByteBuffer(capacity: 4096)
        hit.writeHead(
            ofHitAt: age, timeToLive: timeToLive, to: out, persists: true, forwarding: settings.responseForwarding)
        if !stored.appendPacked(hit.hitPart, to: out) {
            append(.one(.complete(CompleteBodyReader(stored.pieces ?? ShortList(), part: hit.hitPart))), to: out)
        }
        return String(out.span)
    }

    private func append(_ sources: Delivery.Sources, to out: ByteBuffer) {
        let list = GatherList()
        let isWhole = sources.gatherAll(into: list, behind: out)
        #expect(isWhole)
        list.copy(to: out)
    }

    private func bytes(of answer: Answer, _ stored: StoredResponse) throws -> String {
        _ = try fresh(stored)
        var provenance = Provenance(.synthetic)
        provenance.note(stored, detail: nil, at: now)
        let out = ByteBuffer(capacity: 4096)
        answer.writeHead(
            to: out, provenance: provenance, at: now, persists: true, version: .http11,
            forwarding: settings.responseForwarding)
        #expect(answer.framing(for: .http11) == .sized)
        append(answer.sources(), to: out)
        return String(out.span)
    }

    private func fresh(_ stored: StoredResponse) throws -> (age: UInt32, timeToLive: UInt32) {
        guard case .fresh(let age, let timeToLive) = stored.facts.reuse(for: .none, at: now) else {
            Issue.record("the sample is not fresh")
            return (0, 0)
        }
        return (age, timeToLive)
    }

    private func stored(_ sample: Sample) throws -> StoredResponse {
        let head = block(
            "Date: Sun, 06 Nov 1994 08:49:37 GMT\nCache-Control: max-age=60\nETag: \"a\"\nLast-Modified: Sun, 06 Nov 1994 08:00:00 GMT\n"
                + "Content-Type: text/plain\n" + sample.moreFields)
        let facts = ResponseFacts(
            status: sample.status, fields: head.view, requestTime: arrival, responseTime: arrival,
            policy: CachingPolicy())
        let (bytes, key) = (Array(sample.body.utf8), [UInt8]())
        if sample.isPacked {
            return StoredResponse(packing: head.bytes.span, body: bytes.span, under: key.span, facts: facts)
        }
        let body = GrowingBody(budget: MemoryBudget(limit: 1 << 20), expectedLength: nil)
        let taken = bytes.isEmpty ? .accepted : body.append(bytes.span)
        try #require(taken == .accepted)
        body.complete()
        return StoredResponse(head: head, facts: facts, body: body)
    }

    private func request(_ fields: String) throws -> ClientRequest {
        let parsed = try ParsedHead("GET /x\n\(fields)")
        let route = try #require(settings.onlyRoute)
        let key = CacheKey(hash: 1, bytes: ByteSlice("http a.example /x"))
        return ClientRequest(
            parsed.head, parsed.fields, route: route, key: key, visits: 0)
    }
}
