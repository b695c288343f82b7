import Testing

extension Conformance {
    /// RFC 9111 §4.4 and the documents beside it.
    @Suite struct Companions {
        @Test(arguments: invalidation) func `unsafe requests invalidate`(_ one: Case) throws { try one.perform() }
        @Test(arguments: targeted) func `targeted fields take the place of Cache-Control`(_ one: Case) throws {
            try one.perform()
        }
        @Test(arguments: groups) func `an invalidated cache group is not reused`(_ one: Case) throws {
            try one.perform()
        }
        @Test(arguments: noVarySearch) func `queries are equivalent as No-Vary-Search says`(_ one: Case) throws {
            try one.perform()
        }
        @Test(arguments: statusFields) func `the proxy describes itself in its fields`(_ one: Case) throws {
            try one.perform()
        }
        @Test(arguments: interims) func `interim responses are forwarded and not stored`(_ one: Case) throws {
            try one.perform()
        }

        private static let fresh = "Cache-Control: max-age=100"

        @CaseTable static var invalidation: [Case] {
            for method in ["POST", "PUT", "DELETE", "PATCH", "FROB", "MKCOL", "get"] {
                Case(
                    "\(method) invalidates its target", .answers(fresh), .get(.fetched), .send(method, .fetched),
                    .get(.fetched))
            }
            for method in ["OPTIONS", "HEAD"] {
                Case(
                    "\(method) is safe and does not invalidate", .answers(fresh), .get(.fetched), .send(method, .stale),
                    .get(.hit, .body("answer 1")))
            }
            for status in [200, 201, 204, 302, 303] {
                Case(
                    "a \(status) to POST invalidates", .answers(fresh), .get(.fetched), .answers(status),
                    .send("POST", .fetched), .answers(fresh), .get(.fetched))
            }
            for status in [400, 404, 409, 500, 503] {
                Case(
                    "a \(status) to POST does not invalidate", .answers(fresh), .get(.fetched), .answers(status),
                    .send("POST", .fetched), .get(.hit, .body("answer 1")))
            }
            for name in ["Location", "Content-Location"] {
                Case(
                    "\(name) of the same origin is invalidated", .answers(fresh), .get(.fetched, .at("/b")),
                    .answers(201, "\(name): @/b"), .send("POST", .fetched), .answers(fresh), .get(.fetched, .at("/b")))
                Case(
                    "\(name) as an absolute URI", .answers(fresh), .get(.fetched, .at("/b")),
                    .answers(201, "\(name): {scheme}://{host}@/b"), .send("POST", .fetched), .answers(fresh),
                    .get(.fetched, .at("/b")))
                Case(
                    "\(name) relative to the target", .answers(fresh), .get(.fetched, .at("/x/b")),
                    .answers(201, "\(name): b"), .send("POST", .fetched, .at("/x/a")), .answers(fresh),
                    .get(.fetched, .at("/x/b")))
                Case(
                    "\(name) of another host is left alone", .answers(fresh), .get(.fetched, .at("/b")),
                    .answers(201, "\(name): http://other.example@/b"), .send("POST", .fetched),
                    .get(.hit, .at("/b"), .body("answer 1")))
                Case(
                    "\(name) of another scheme is left alone", .answers(fresh), .get(.fetched, .at("/b")),
                    .answers(201, "\(name): {other}://{host}@/b"), .send("POST", .fetched),
                    .get(.hit, .at("/b"), .body("answer 1")))
                Case(
                    "\(name) in an error is left alone", .answers(fresh), .get(.fetched, .at("/b")),
                    .answers(400, "\(name): @/b"), .send("POST", .fetched), .get(.hit, .at("/b"), .body("answer 1")))
                Case(
                    "\(name) in a response to GET is left alone", .answers(fresh), .get(.fetched, .at("/b")),
                    .answers(201, "\(name): @/b"), .get(.fetched), .get(.hit, .at("/b"), .body("answer 1")))
            }
            Case(
                "all variants are invalidated", .answers(fresh, "Vary: X-V"), .get(.fetched, "X-V: 1"),
                .get(.fetched, "X-V: 2"), .send("DELETE", .fetched), .get(.fetched, "X-V: 1"), .get(.fetched, "X-V: 2"))
            Case(
                "the key is invalidated in the form of its route", by: "drop", .answers(fresh),
                .get(.fetched, .at("?a=1")), .send("POST", .fetched, .at("?utm_source=x&a=1")),
                .get(.fetched, .at("?a=1")))
            Case(
                "Location is invalidated in the form of its route", by: "sort", .answers(fresh),
                .get(.fetched, .at("?a=1&b=2")), .answers(201, "Location: @?b=2&a=1"), .send("POST", .fetched),
                .answers(fresh), .get(.fetched, .at("?a=1&b=2")))
            Case(
                "another query is left alone", .answers(fresh), .get(.fetched, .at("?a=1")), .send("POST", .fetched),
                .get(.hit, .at("?a=1"), .body("answer 1")))
            Case(
                "an invalidated response is not served stale",
                .answers("Cache-Control: max-age=100, stale-while-revalidate=600, stale-if-error=600", "ETag: \"a\""),
                .get(.fetched), .answers(204), .send("POST", .fetched), .answers(503),
                .get(.stale, .status(503), .body("answer 3")))
            Case(
                "an invalidated response does not satisfy only-if-cached", .answers(fresh), .get(.fetched),
                .send("DELETE", .fetched), .get(.refused, "Cache-Control: only-if-cached, max-stale", .status(504)))
            Case(
                "a fetch in flight is not stored as if newer", .answersSlowly(0.6, 200, fresh), .begin(), .answers(204),
                .send("PUT", .fetched), .end(.status(200)), .answers(fresh), .get(.fetched))
            Case(
                "a request after the change does not join a fetch before the change", .answersSlowly(0.6, 200, fresh),
                .begin(), .answers(204), .send("PUT", .fetched), .answers(fresh, body: "new"),
                .get(.fetched, .body("new")), .end(.status(200)), .get(.hit, .body("new")))
        }

        @CaseTable static var targeted: [Case] {
            Case(
                "CDN-Cache-Control takes precedence over Cache-Control",
                .answers("CDN-Cache-Control: max-age=100", "Cache-Control: no-store"), .get(.fetched), .get(.hit))
            Case(
                "CDN-Cache-Control can prohibit storing",
                .answers("CDN-Cache-Control: no-store", "Cache-Control: max-age=100"),
                .get(.fetched), .get(.fetched))
            Case(
                "CDN-Cache-Control: private", .answers("CDN-Cache-Control: private", "Cache-Control: max-age=100"),
                .get(.fetched), .get(.fetched))
            Case(
                "CDN-Cache-Control takes precedence over Expires",
                .answers("CDN-Cache-Control: max-age=0", "Expires: {100}"),
                .get(.fetched), .get(.fetched))
            Case(
                "a shorter CDN-Cache-Control", .answers("CDN-Cache-Control: max-age=1", "Cache-Control: max-age=100"),
                .get(.fetched), .pause(1.1), .get(.fetched))
            Case(
                "CDN-Cache-Control: s-maxage", .answers("CDN-Cache-Control: s-maxage=100", "Cache-Control: max-age=0"),
                .get(.fetched), .get(.hit))
            Case(
                "an invalid CDN-Cache-Control falls back to Cache-Control",
                .answers("CDN-Cache-Control: max-age=100, &", fresh), .get(.fetched), .get(.hit))
            Case(
                "an invalid CDN-Cache-Control gives no lifetime",
                .answers("CDN-Cache-Control: max-age=100, &", "Cache-Control: no-store"), .get(.fetched), .get(.fetched)
            )
            Case(
                "capitals are no structured keys: falls back",
                .answers("CDN-Cache-Control: Max-Age=100", "Cache-Control: no-store"), .get(.fetched), .get(.fetched))
            Case(
                "an empty CDN-Cache-Control falls back", .answers("CDN-Cache-Control:", fresh), .get(.fetched),
                .get(.hit))
            Case(
                "of a duplicate key the last value counts", .answers("CDN-Cache-Control: max-age=0, max-age=100"),
                .get(.fetched),
                .get(.hit))
            Case(
                "a value of a wrong type makes the response stale",
                .answers("CDN-Cache-Control: max-age=\"100\"", fresh, "ETag: \"a\""),
                .get(.fetched), .get(.validated))
            Case(
                "CDN-Cache-Control: no-cache",
                .answers("CDN-Cache-Control: max-age=100, no-cache", fresh, "ETag: \"a\""), .get(.fetched),
                .get(.validated))
            Case(
                "unknown parameters and members",
                .answers("CDN-Cache-Control: max-age=100;x=1, foo=(1 2), bar", "Cache-Control: no-store"),
                .get(.fetched), .get(.hit))
            Case(
                "a field targeted at another cache is ignored",
                .answers("Other-Cache-Control: max-age=100", "Cache-Control: no-store"),
                .get(.fetched), .get(.fetched))
            Case(
                "both fields are forwarded", .answers("CDN-Cache-Control: max-age=100", "Cache-Control: max-age=1"),
                .get(.fetched), .get(.hit, .has("CDN-Cache-Control", "max-age=100"), .has("Cache-Control", "max-age=1"))
            )
        }

        // Groups belong to the whole origin, so each case has its own by name.
        @CaseTable static var groups: [Case] {
            Case(
                "an unsafe request invalidates the groups that its response names",
                .answers(fresh, "Cache-Groups: \"@one\""),
                .get(.fetched, .at("/a")), .answers(200, "Cache-Group-Invalidation: \"@one\""),
                .send("POST", .fetched, .at("/b")), .answers(fresh), .get(.fetched, .at("/a")))
            Case(
                "a response of two groups is invalidated with either",
                .answers(fresh, "Cache-Groups: \"@one\", \"@two\""),
                .get(.fetched, .at("/a")), .answers(200, "Cache-Group-Invalidation: \"@two\""),
                .send("POST", .fetched, .at("/b")), .answers(fresh), .get(.fetched, .at("/a")))
            Case(
                "another group is left alone", .answers(fresh, "Cache-Groups: \"@one\""), .get(.fetched, .at("/a")),
                .answers(200, "Cache-Group-Invalidation: \"@two\""), .send("POST", .fetched, .at("/b")),
                .get(.hit, .at("/a"), .body("answer 1")))
            Case(
                "groups are compared by case", .answers(fresh, "Cache-Groups: \"@one\""), .get(.fetched, .at("/a")),
                .answers(200, "Cache-Group-Invalidation: \"@ONE\""), .send("POST", .fetched, .at("/b")),
                .get(.hit, .at("/a"), .body("answer 1")))
            Case(
                "a safe request invalidates no group", .answers(fresh, "Cache-Groups: \"@one\""),
                .get(.fetched, .at("/a")), .answers(200, "Cache-Group-Invalidation: \"@one\""),
                .get(.fetched, .at("/b")), .get(.hit, .at("/a"), .body("answer 1")))
            Case(
                "groups of another host are left alone", .answers(fresh, "Cache-Groups: \"@one\""),
                .get(.fetched, .at("/a"), "Host: one.example"), .answers(200, "Cache-Group-Invalidation: \"@one\""),
                .send("POST", .fetched, .at("/b"), "Host: two.example"),
                .get(.hit, .at("/a"), "Host: one.example", .body("answer 1")))
            Case(
                "an unsafe request invalidates the group of the response that it invalidates",
                .answers(fresh, "Cache-Groups: \"@one\""), .get(.fetched, .at("/a")),
                .answers(fresh, "Cache-Groups: \"@one\""), .get(.fetched, .at("/b")), .answers(204),
                .send("DELETE", .fetched, .at("/b")), .answers(fresh), .get(.fetched, .at("/b")))
            Case(
                "an invalid list of groups is ignored", .answers(fresh, "Cache-Groups: @one two"),
                .get(.fetched, .at("/a")), .answers(200, "Cache-Group-Invalidation: \"@one\""),
                .send("POST", .fetched, .at("/b")), .get(.hit, .at("/a"), .body("answer 1")))
        }

        @CaseTable static var noVarySearch: [Case] {
            Case(
                "except=(): no parameter matters", .answers(fresh, "No-Vary-Search: except=()"),
                .get(.fetched, .at("?a=1")), .get(.hit, .at("?a=2")), .get(.hit, .at("?b=3")))
            Case(
                "params=(\"a\"): the parameter a does not matter", .answers(fresh, "No-Vary-Search: params=(\"a\")"),
                .get(.fetched, .at("?a=1&b=1")), .get(.hit, .at("?a=2&b=1")), .get(.hit, .at("?b=1")),
                .get(.fetched, .at("?a=1&b=2")))
            Case(
                "except=(\"a\"): only the parameter a matters", .answers(fresh, "No-Vary-Search: except=(\"a\")"),
                .get(.fetched, .at("?a=1&b=1")), .get(.hit, .at("?a=1&b=2")), .get(.fetched, .at("?a=2&b=1")))
            Case(
                "key-order: the order of names does not matter", .answers(fresh, "No-Vary-Search: key-order"),
                .get(.fetched, .at("?a=1&b=2")), .get(.hit, .at("?b=2&a=1")), .get(.fetched, .at("?a=1&b=3")))
            Case(
                "without key-order the order matters", .answers(fresh, "No-Vary-Search: params=(\"x\")"),
                .get(.fetched, .at("?a=1&b=2")), .get(.fetched, .at("?b=2&a=1")))
            Case(
                "an invalid No-Vary-Search is ignored", .answers(fresh, "No-Vary-Search: params=("),
                .get(.fetched, .at("?a=1")), .get(.fetched, .at("?a=2")))
            Case(
                "params without a list, as in former drafts, is ignored", .answers(fresh, "No-Vary-Search: params"),
                .get(.fetched, .at("?a=1")), .get(.fetched, .at("?a=2")))
            Case(
                "no query equals a query whose parameters do not matter",
                .answers(fresh, "No-Vary-Search: params=(\"a\")"),
                .get(.fetched, .at("?a=1")), .get(.hit), .get(.hit, .at("?")), .get(.hit, .at("?&a")))
            Case(
                "equal names keep their order, even if the order of different names does not matter",
                .answers(fresh, "No-Vary-Search: key-order"), .get(.fetched, .at("?a=1&b=1&a=2")),
                .get(.hit, .at("?b=1&a=1&a=2")), .get(.fetched, .at("?a=2&a=1&b=1")))
            Case(
                "percent-encoding does not hide a name", .answers(fresh, "No-Vary-Search: params=(\"a b\")"),
                .get(.fetched, .at("?a%20b=1&c=1")), .get(.hit, .at("?a+b=2&c=1")))
            Case(
                "another path is still another response", .answers(fresh, "No-Vary-Search: except=()"),
                .get(.fetched, .at("/x?a=1")), .get(.fetched, .at("/y?a=1")))
        }

        @CaseTable static var statusFields: [Case] {
            Case(
                "Cache-Status: a miss that was stored", .answers(fresh),
                .get(.fetched, .has("Cache-Status", "coalesced; fwd=uri-miss; fwd-status=200; stored; ttl=…")))
            Case(
                "Cache-Status: a hit", .answers(fresh, "Age: 10"), .get(.fetched),
                .get(.hit, .contains("Cache-Status", "coalesced; hit; ttl=")))
            Case(
                "Cache-Status: a stale response was validated", .answers("Cache-Control: max-age=0", "ETag: \"a\""),
                .get(.fetched), .answers(304, fresh, "ETag: \"a\""),
                .get(.validated, .contains("Cache-Status", "fwd=stale; fwd-status=304")))
            Case(
                "Cache-Status: another variant", .answers(fresh, "Vary: X-V"), .get(.fetched, "X-V: 1"),
                .get(.fetched, "X-V: 2", .contains("Cache-Status", "fwd=vary-miss")))
            Case(
                "Cache-Status: the client's no-cache", .answers(fresh), .get(.fetched),
                .get(.fetched, "Cache-Control: no-cache", .contains("Cache-Status", "fwd=request")))
            Case(
                "Cache-Status: older than the client wants", .answers(fresh, "Age: 10", "ETag: \"a\""), .get(.fetched),
                .answers(304, fresh, "ETag: \"a\""),
                .get(.validated, "Cache-Control: max-age=5", .contains("Cache-Status", "fwd=request; fwd-status=304")))
            for asked in ["no-transform", "no-cache", "max-age=5"] {
                // RFC 9211 §2.2: `request` is for a fresh response that the request forbids.
                Case(
                    "Cache-Status: a stale response is stale, whatever the client sends: \(asked)",
                    .answers("Cache-Control: max-age=10", "Age: 20", "ETag: \"a\""), .get(.fetched),
                    .answers(304, fresh, "ETag: \"a\""),
                    .get(.validated, "Cache-Control: \(asked)", .contains("Cache-Status", "fwd=stale; fwd-status=304")))
            }
            Case(
                "Cache-Status: a stale part is stale, whatever the client sends", by: "parts",
                .script(
                    Reply(
                        status: 206,
                        fields: ["Cache-Control: max-age=10", "Age: 20", "ETag: \"a\"", "Content-Range: bytes 0-4/26"],
                        body: "abcde")), .get(.fetched, "Range: bytes=0-4"), .answers(304, fresh, "ETag: \"a\""),
                .get(
                    .validated, "Range: bytes=0-4", "Cache-Control: no-transform", .status(206),
                    .contains("Cache-Status", "fwd=stale")))
            Case(
                "Cache-Status: a method that is a pass", .answers(fresh),
                .send("POST", .fetched, .contains("Cache-Status", "fwd=method")))
            Case(
                "Cache-Status: a joined request is collapsed", .answersTogether(200, fresh),
                .together(3, .fetched, .number(2, "Cache-Status", "collapsed")))
            Case(
                "Cache-Status: max-stale has a negative ttl",
                .answers("Cache-Control: max-age=10", "Age: 20", "ETag: \"a\""), .get(.fetched),
                .get(.hit, "Cache-Control: max-stale", .contains("Cache-Status", "coalesced; hit; ttl=-")))
            Case(
                "Cache-Status: a response that is not stored lacks stored", .answers("Cache-Control: no-store"),
                .get(.fetched, .has("Cache-Status", "coalesced; fwd=uri-miss; fwd-status=200; detail=no-store")))
            for (fields, reason) in [
                ("private", "private"), ("max-age=0", "no-freshness"), ("no-cache", "no-cache"),
                ("public", "no-freshness"),
            ] {
                Case(
                    "Cache-Status: the reason not to store, \(fields)", .answers("Cache-Control: \(fields)"),
                    .get(.fetched, .contains("Cache-Status", "; detail=\(reason)")))
            }
            Case(
                "Cache-Status: the reason not to store, Set-Cookie", .answers(fresh, "Set-Cookie: a=1"),
                .get(.fetched, .contains("Cache-Status", "; detail=set-cookie")))
            Case(
                "Cache-Status: the reason not to store, Vary", .answers(fresh, "Vary: *"),
                .get(.fetched, .contains("Cache-Status", "; detail=vary-star")))
            Case(
                "Cache-Status: the reason not to store, a status", .answers(403, "Last-Modified: {-100}"),
                .get(.fetched, .contains("Cache-Status", "; detail=not-cacheable")))
            Case(
                "Cache-Status: the reason not to store, Authorization", .answers(fresh),
                .get(.fetched, "Authorization: x", .contains("Cache-Status", "; detail=authorization")))
            Case(
                "Cache-Status: the reason not to store, the client", .answers(fresh),
                .get(.fetched, "Cache-Control: no-store", .contains("Cache-Status", "; detail=request-no-store")))
            Case(
                "Cache-Status: the reason not to store, the operator", by: "uncached", .answers(fresh),
                .get(.fetched, .contains("Cache-Status", "; detail=caching-off")))
            Case(
                "Cache-Status: the reason not to store, HEAD", .answers(fresh, body: ""),
                .head(.fetched, .contains("Cache-Status", "; detail=method")))
            Case(
                "Cache-Status: the reason not to store, a 412", .answers(412, fresh),
                .get(.fetched, .contains("Cache-Status", "; detail=status")))
            Case(
                "Cache-Status: the reason not to store, the length",
                .does(.head(200, fresh, "Content-Length: 1048577"), .text("x"), .close),
                .get(.fetched, .cutOff, .contains("Cache-Status", "; detail=too-large")))
            Case(
                "Cache-Status: a joined request gets the reason too",
                .answersTogether(200, "Cache-Control: max-age=0"),
                .together(3, .fetched, .number(3, "Cache-Status", "; detail=no-freshness")))
            Case(
                "Cache-Status: a stored response has no such reason", .answers(fresh),
                .get(.fetched, .has("Cache-Status", "coalesced; fwd=uri-miss; fwd-status=200; stored; ttl=…")),
                .get(.hit, .has("Cache-Status", "coalesced; hit; ttl=…")))
            Case(
                "Cache-Status comes behind that of the origin", .answers(fresh, "Cache-Status: far; hit"),
                .get(
                    .fetched,
                    .lines("Cache-Status", ["far; hit", "coalesced; fwd=uri-miss; fwd-status=200; stored; ttl=…"])))
            Case(
                "Proxy-Status: a connection that ends", .does(.close),
                .get(.failed, .status(502), .contains("Proxy-Status", "coalesced; error=connection_terminated")))
            Case(
                "Proxy-Status: an origin that is silent", by: "impatient", .does(.silence),
                .get(
                    .failed, .status(504), .contains("Proxy-Status", "coalesced; error=http_response_timeout"),
                    .contains("Cache-Status", "detail=head-timeout")))
            Case(
                "Proxy-Status: a response that is not HTTP", .does(.raw("nonsense\r\n\r\n"), .close),
                .get(.failed, .status(502), .contains("Proxy-Status", "coalesced; error=http_protocol_error")))
            Case(
                "Proxy-Status of the origin is forwarded", .answers(fresh, "Proxy-Status: far; error=dns_error"),
                .get(.fetched, .has("Proxy-Status", "far; error=dns_error")))
            Case(
                "an error from the proxy has Date and a length", .does(.close),
                .get(.failed, .status(502), .contains("Date", "GMT"), .contains("Content-Type", "text/plain")))
            Case(
                "Via is added to both", .answers(fresh, "Via: 1.1 far"),
                .get(
                    .fetched, "Via: 1.0 near", .asked("Via", "1.0 near, {version} coalesced"),
                    .has("Via", "1.1 far, 1.1 coalesced")), .get(.hit, .has("Via", "1.1 far, 1.1 coalesced")))
            Case(
                "the proxy's name is added to CDN-Loop", .answers(fresh),
                .get(.fetched, "CDN-Loop: other", .asked("CDN-Loop", "other, coalesced")))
            Case(
                "a request that has been here too often is a loop", .answers(fresh),
                .get(.refused, "Via: 1.1 coalesced, 1.1 coalesced, 1.1 coalesced, 1.1 coalesced", .status(508)))
            Case(
                "a request that is a loop by CDN-Loop", .answers(fresh),
                .get(
                    .refused, "CDN-Loop: coalesced, coalesced; x=\"y, z\", coalesced", "CDN-Loop: coalesced",
                    .status(508)))
            Case(
                "a Date is added where there is none", .answers("Date:", "Cache-Control: no-store"),
                .get(.fetched, .contains("Date", "GMT")))
        }

        @CaseTable static var interims: [Case] {
            Case(
                "103 goes to the client", .answersAfter([.interim(103, "Link: </a>")], "Cache-Control: no-store"),
                .get(.fetched, .interims([103])))
            Case(
                "several interim responses are forwarded in order",
                .answersAfter(
                    [.interim(102), .interim(103, "Link: </a>"), .interim(103, "Link: </b>")], "Cache-Control: no-store"
                ), .get(.fetched, .interims([102, 103, 103])))
            Case(
                "an unknown interim response is forwarded too",
                .answersAfter([.interim(199, "X: y")], "Cache-Control: no-store"),
                .get(.fetched, .interims([199])))
            Case(
                "interim responses go to all waiters",
                .answersAfter([.interim(103, "Link: </a>")], "Cache-Control: max-age=100"),
                .together(4, .fetched, .interims([103])))
            Case(
                "interim responses are not stored",
                .answersAfter([.interim(103, "Link: </a>")], "Cache-Control: max-age=100"),
                .get(.fetched, .interims([103])), .get(.hit, .interims([])))
            Case(
                "a client of HTTP/1.0 gets no interim response",
                .answersAfter([.interim(103, "Link: </a>")], "Cache-Control: max-age=100"),
                .get(.fetched, .oldClient, .interims([])))
            Case(
                "an unrequested 100 is not forwarded",
                .answersAfter([.interim(100)], "Cache-Control: max-age=100"), .get(.fetched, .interims([])))
        }
    }
}
