import Testing

extension Conformance {
    /// RFC 9111 §3: what is stored, and which of its fields.
    @Suite struct Storing {
        @Test(arguments: responses) func `a response is stored as its directives say`(_ one: Case) throws {
            try one.perform()
        }
        @Test(arguments: authorized) func `a permitted response to Authorization is stored`(_ one: Case) throws {
            try one.perform()
        }
        @Test(arguments: methods) func `methods are understood, forwarded or refused`(_ one: Case) throws {
            try one.perform()
        }
        @Test(arguments: fields) func `fields are kept but those for one hop or one user`(_ one: Case) throws {
            try one.perform()
        }

        private static let fresh = "Cache-Control: max-age=100"

        @CaseTable static var responses: [Case] {
            for directive in [
                "no-store", "NO-STORE", "no-store=\"x\"", "private", "private, public", "public, no-store",
                "private, private=\"x\"",
            ] {
                Case(
                    "\(directive): not stored", .answers("Cache-Control: max-age=100, \(directive)"), .get(.fetched),
                    .get(.fetched))
            }
            Case(
                "private= with fields: stored without them",
                .answers("Cache-Control: max-age=100, private=\"X-Mine\"", "X-Mine: 1", "X-Ours: 2"),
                .get(.fetched, .has("X-Mine", "1")), .get(.hit, .lacks("X-Mine"), .has("X-Ours", "2")))
            Case(
                "no-cache= with fields: stored without them",
                .answers(
                    "Cache-Control: max-age=100, no-cache=\"X-Mine, X-Other\"", "X-Mine: 1", "X-Other: 3", "X-Ours: 2"),
                .get(.fetched, .has("X-Mine", "1")),
                .get(.hit, .lacks("X-Mine"), .lacks("X-Other"), .has("X-Ours", "2")))
            Case(
                "qualified fields go to the leader, not to the waiters",
                .answersAfter([], "Cache-Control: max-age=100, private=\"X-Mine\"", "X-Mine: 1"),
                .together(4, .fetched, .number(1, "X-Mine", "1")), .get(.hit, .lacks("X-Mine")))
            Case(
                "private= with an empty list: not stored", .answers("Cache-Control: max-age=100, private=\"\""),
                .get(.fetched), .get(.fetched))
            Case(
                "no-cache without validator is not reused", .answers("Cache-Control: max-age=100, no-cache"),
                .get(.fetched), .get(.fetched))
            Case(
                "must-understand overrides no-store if the status is understood",
                .answers("Cache-Control: max-age=100, no-store, must-understand"), .get(.fetched), .get(.hit))
            Case(
                "must-understand prevents storing an unknown status",
                .answers(299, "Cache-Control: max-age=100, must-understand"), .get(.fetched), .get(.fetched))
            Case("public alone gives no lifetime", .answers("Cache-Control: public"), .get(.fetched), .get(.fetched))
            Case(
                "Set-Cookie: not stored", .answers(fresh, "Set-Cookie: a=1"), .get(.fetched, .has("Set-Cookie", "a=1")),
                .get(.fetched))
            Case(
                "Set-Cookie with public: stored with the cookie",
                .answers("Cache-Control: max-age=100, public", "Set-Cookie: a=1"), .get(.fetched),
                .get(.hit, .has("Set-Cookie", "a=1")))
            Case(
                "Set-Cookie in a qualified directive: stored without the cookie",
                .answers("Cache-Control: max-age=100, no-cache=\"Set-Cookie\"", "Set-Cookie: a=1"),
                .get(.fetched, .has("Set-Cookie", "a=1")), .get(.hit, .lacks("Set-Cookie")))
            Case("Vary: * is never reused", .answers(fresh, "Vary: *"), .get(.fetched), .get(.fetched))
            Case("Vary: * among others", .answers(fresh, "Vary: Accept, *"), .get(.fetched), .get(.fetched))
            Case(
                "a response cut off by length is cut off, and not stored",
                .does(.head(200, fresh, "Content-Length: 10"), .text("12345"), .close),
                .get(.fetched, .cutOff), .answers(fresh), .get(.fetched))
            Case(
                "a response cut off in a chunk is cut off, and not stored",
                .does(.head(200, fresh, "Transfer-Encoding: chunked"), .chunk("12345"), .close),
                .get(.fetched, .cutOff), .answers(fresh), .get(.fetched))
            Case(
                "a response that ends with the connection is complete, and stored",
                .does(.head(200, fresh), .text("12345"), .close),
                .get(.fetched, .body("12345")), .get(.hit, .body("12345")))
            Case(
                "a chunked response is served with a length",
                .does(.head(200, fresh, "Transfer-Encoding: chunked"), .chunk("one"), .chunk("two"), .lastChunk()),
                .get(.fetched, .body("onetwo")),
                .get(.hit, .body("onetwo"), .has("Content-Length", "6"), .lacks("Transfer-Encoding")))
            Case(
                "an empty response", .answers(fresh, body: ""), .get(.fetched), .get(.hit, .has("Content-Length", "0")))
            Case(
                "a 206 to no Range is not stored as a full response",
                .answers(206, fresh, "Content-Range: bytes 0-4/9", body: "12345"), .get(.fetched), .answers(200, fresh),
                .get(.fetched))
            Case(
                "a 304 to a request without condition is not stored", .answers(304, fresh, "ETag: \"a\""),
                .get(.failed, .status(502)), .answers(200, fresh), .get(.fetched))
            Case(
                "a newer response replaces the older", .answers(fresh), .get(.fetched), .answers(fresh),
                .get(.fetched, "Cache-Control: no-cache"), .get(.hit, .body("answer 2")))
            Case("a route that is not cached", by: "uncached", .answers(fresh), .get(.fetched), .get(.fetched))
            Case(
                "a route that is not cached validates no stored response", by: "uncached",
                .answers(fresh, "ETag: \"a\""), .get(.fetched), .get(.fetched))
        }

        @CaseTable static var authorized: [Case] {
            Case("Authorization: not stored", .answers(fresh), .get(.fetched, "Authorization: x"), .get(.fetched))
            for directive in ["public, max-age=100", "s-maxage=100", "must-revalidate, max-age=100"] {
                Case(
                    "Authorization and \(directive): shared", .answers("Cache-Control: \(directive)"),
                    .get(.fetched, "Authorization: x"), .get(.hit), .get(.hit, "Authorization: y"))
            }
            Case(
                "Authorization and proxy-revalidate: not stored",
                .answers("Cache-Control: proxy-revalidate, max-age=100"), .get(.fetched, "Authorization: x"),
                .get(.fetched))
            Case(
                "Authorization and Expires: not stored", .answers("Expires: {100}"), .get(.fetched, "Authorization: x"),
                .get(.fetched))
            Case(
                "a response stored without Authorization serves requests with Authorization", .answers(fresh),
                .get(.fetched),
                .get(.hit, "Authorization: x"))
            Case(
                "Authorization goes to the origin", .answers(fresh),
                .get(.fetched, "Authorization: Basic eA==", .asked("Authorization", "Basic eA==")))
            Case(
                "each of simultaneous requests with Authorization is a fetch", .answersTogether(200, fresh),
                .together(4, .fetchedEach, "Authorization: x"))
        }

        @CaseTable static var methods: [Case] {
            Case(
                "HEAD is answered from a stored GET", .answers(fresh, body: "hello"), .get(.fetched),
                .head(.hit, .has("Content-Length", "5")))
            Case("HEAD is not stored as a GET", .answers(fresh), .head(.fetched), .get(.fetched), .get(.hit))
            Case(
                "HEAD of a stale response is forwarded", .answers("Cache-Control: max-age=0", "ETag: \"a\""),
                .get(.fetched), .head(.validated))
            for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "REPORT", "get"] {
                Case(
                    "\(method) is always forwarded", .answers(fresh), .send(method, .fetched), .send(method, .fetched),
                    .get(.fetched))
            }
            Case(
                "a method override field does not make a key or a POST", .answers(fresh), .get(.fetched),
                .get(.hit, "X-HTTP-Method-Override: DELETE"))
            Case(
                "a GET with content is forwarded alone", .answers(fresh), .get(.fetched, .content("x")), .get(.fetched),
                .get(.fetched, .content("x")))
            Case(
                "POST with lifetime and Content-Location is not stored by default",
                .answers("Cache-Control: max-age=100", "Content-Location: @"), .send("POST", .fetched, .content("q")),
                .get(.fetched))
            Case(
                "POST with both is stored if the route says so, for GET and HEAD", by: "posts",
                .answers(fresh, "Content-Location: @", body: "made"),
                .send("POST", .fetched, .content("q"), .contains("Cache-Status", "stored")),
                .get(.hit, .body("made"), .has("Content-Location", "@")), .head(.hit, .has("Content-Length", "4")))
            Case(
                "POST without content is stored the same way", by: "posts", .answers(fresh, "Content-Location: @"),
                .send("POST", .fetched), .get(.hit))
            Case(
                "POST is never answered from the store", by: "posts", .answers(fresh, "Content-Location: @"),
                .send("POST", .fetched, .content("q")), .send("POST", .fetched, .content("q")),
                .get(.hit, .body("answer 1")))
            Case(
                "POST that names its target by an absolute URI", by: "posts",
                .answers(fresh, "Content-Location: {scheme}://{host}@"), .send("POST", .fetched, .content("q")),
                .get(.hit))
            Case(
                "POST that names its target with the query", by: "posts", .answers(fresh, "Content-Location: @?a=1"),
                .send("POST", .fetched, .at("?a=1"), .content("q")), .get(.hit, .at("?a=1")))
            Case(
                "POST that names another query", by: "posts", .answers(fresh, "Content-Location: @?a=2"),
                .send("POST", .fetched, .at("?a=1"), .content("q")), .get(.fetched, .at("?a=1")),
                .get(.fetched, .at("?a=2")))
            for (what, fields) in [
                ("without Content-Location", []), ("with another Content-Location", ["Content-Location: @/else"]),
                ("with another host's Content-Location", ["Content-Location: http://other.example@"]),
                ("with two Content-Location lines", ["Content-Location: @", "Content-Location: @"]),
                ("with Set-Cookie", ["Content-Location: @", "Set-Cookie: a=1"]),
            ] as [(String, [String])] {
                Case(
                    "POST \(what) is not stored", by: "posts", .script(Reply(fields: [fresh] + fields)),
                    .send("POST", .fetched, .content("q")), .get(.fetched))
            }
            for control in ["no-store, max-age=100", "private, max-age=100", "public", "no-transform"] {
                Case(
                    "POST with \(control) is not stored", by: "posts",
                    .answers(
                        "Cache-Control: \(control)", "Content-Location: @",
                        "Last-Modified: Tue, 01 Jan 2019 00:00:00 GMT"), .send("POST", .fetched, .content("q")),
                    .answers(fresh), .get(.fetched))
            }
            for status in [201, 203, 204, 301, 404] {
                Case(
                    "POST answered by \(status) is not stored", by: "posts",
                    .answers(status, fresh, "Content-Location: @"), .send("POST", .fetched, .content("q")),
                    .answers(fresh), .get(.fetched))
            }
            for method in ["PUT", "PATCH", "DELETE", "REPORT"] {
                Case(
                    "\(method) with both is not stored", by: "posts", .answers(fresh, "Content-Location: @"),
                    .send(method, .fetched, .content("q")), .get(.fetched))
            }
            Case(
                "POST with no-store in the request is not stored", by: "posts", .answers(fresh, "Content-Location: @"),
                .send("POST", .fetched, "Cache-Control: no-store", .content("q")), .get(.fetched))
            Case(
                "POST with Authorization is not stored", by: "posts", .answers(fresh, "Content-Location: @"),
                .send("POST", .fetched, "Authorization: x", .content("q")), .get(.fetched))
            Case(
                "POST with Authorization and public is stored", by: "posts",
                .answers("Cache-Control: public, max-age=100", "Content-Location: @"),
                .send("POST", .fetched, "Authorization: x", .content("q")), .get(.hit))
            Case(
                "a response to POST replaces that to GET", by: "posts", .answers(fresh, body: "old"), .get(.fetched),
                .answers(fresh, "Content-Location: @", body: "new"), .send("POST", .fetched, .content("q")),
                .get(.hit, .body("new")))
            Case(
                "a POST that fails leaves the response to GET", by: "posts", .answers(fresh, body: "old"),
                .get(.fetched),
                .answers(400, fresh, "Content-Location: @"), .send("POST", .fetched, .content("q"), .body("answer 2")),
                .get(.hit, .body("old")))
            Case(
                "a response to POST is stored for its variant", by: "posts",
                .answers(fresh, "Content-Location: @", "Vary: X-V"),
                .send("POST", .fetched, "X-V: 1", .content("q")), .get(.hit, "X-V: 1"), .get(.fetched, "X-V: 2"))
            Case(
                "a stale response to POST is validated", by: "posts",
                .answers("Cache-Control: max-age=0", "Content-Location: @", "ETag: \"a\"", body: "made"),
                .send("POST", .fetched, .content("q")), .answers(304, fresh, "ETag: \"a\""),
                .get(.validated, .asked("If-None-Match", "\"a\""), .body("made")), .get(.hit, .body("made")))
            Case(
                "a response to POST is invalidated by the next POST", by: "posts",
                .answers(fresh, "Content-Location: @"),
                .send("POST", .fetched, .content("q")), .answers(200, body: "no lifetime"),
                .send("POST", .fetched, .content("r")), .get(.fetched))
            Case(
                "a GET in flight does not overwrite the response to POST", by: "posts",
                .answersSlowly(0.5, 200, fresh, body: "old"), .begin(),
                .answers(fresh, "Content-Location: @", body: "new"), .send("POST", .fetched, .content("q")),
                .end(.body("old")), .get(.hit, .body("new")))
            Case(
                "CONNECT is refused", .answers(fresh),
                .send("CONNECT", .refused, .target("example.com:443"), "Host: example.com:443", .status(405)))
            Case(
                "TRACE is refused, with Max-Forwards or without", .answers(fresh),
                .send("TRACE", .refused, .status(405)), .send("TRACE", .refused, "Max-Forwards: 3", .status(405)))
            Case(
                "OPTIONS with Max-Forwards: 0 is not forwarded", .answers(fresh),
                .send("OPTIONS", .refused, "Max-Forwards: 0", .status(200), .contains("Allow", "GET")))
            Case(
                "OPTIONS counts Max-Forwards down", .answers(fresh),
                .send("OPTIONS", .fetched, "Max-Forwards: 10", .asked("Max-Forwards", "9")))
            Case(
                "a Max-Forwards above the largest supported value becomes that value", .answers(fresh),
                .send("OPTIONS", .fetched, "Max-Forwards: 99999999999", .asked("Max-Forwards", "2147483646")))
            Case(
                "Max-Forwards of other methods is forwarded unchanged", .answers(fresh),
                .get(.fetched, "Max-Forwards: 0", .asked("Max-Forwards", "0")))
        }

        @CaseTable static var fields: [Case] {
            Case(
                "unknown fields are kept, byte for byte and in order",
                .answers(fresh, "X-B:  2 ; a=\"b,  c\"", "x-a: 1", "X-B: 3"),
                .get(.fetched, .lines("X-B", ["2 ; a=\"b,  c\"", "3"])),
                .get(.hit, .lines("X-B", ["2 ; a=\"b,  c\"", "3"]), .has("x-a", "1")))
            Case(
                "an empty field is kept", .answers(fresh, "X-Empty:"), .get(.fetched),
                .get(.hit, .lines("X-Empty", [""])))
            for field in [
                "Keep-Alive: timeout=5", "Proxy-Connection: keep-alive", "Proxy-Authenticate: Basic",
                "Proxy-Authentication-Info: a=b", "Trailer: X-T", "Upgrade: h2c", "TE: trailers",
            ] {
                Case(
                    "\(field.prefix { $0 != ":" }) is for one hop", .answers(fresh, field), .get(.fetched),
                    .get(.hit, .lacks(String(field.prefix { $0 != ":" }))))
            }
            Case(
                "a field that Connection names is for one hop",
                .answers(fresh, "Connection: x-hop, X-Other", "X-Hop: 1", "X-Other: 2", "X-Stays: 3"),
                .get(.fetched, .lacks("X-Hop"), .lacks("X-Other")),
                .get(.hit, .lacks("X-Hop"), .lacks("X-Other"), .has("X-Stays", "3")))
            Case(
                "a field that the request's Connection names is for one hop", .answers(fresh),
                .get(.fetched, "Connection: X-Hop", "X-Hop: 1", .askedWithout("X-Hop")))
            Case(
                "Cache-Control is forwarded unchanged", .answers("Cache-Control: max-age=100, Foo=\"bar\", public"),
                .get(.fetched), .get(.hit, .has("Cache-Control", "max-age=100, Foo=\"bar\", public")))
            Case(
                "Age of the origin is replaced", .answers(fresh, "Age: 7"), .get(.fetched), .pause(1.1),
                .get(.hit, .age(8...40)))
            Case(
                "Warning is neither made nor removed", .answers(fresh, "Warning: 110 - \"old\""), .get(.fetched),
                .get(.hit, .has("Warning", "110 - \"old\"")))
            Case(
                "a 304 updates and adds fields",
                .answers("Cache-Control: max-age=0", "ETag: \"a\"", "X-Old: 1", "X-New: 1"), .get(.fetched),
                .answers(304, "Cache-Control: max-age=100", "ETag: \"a\"", "X-New: 2", "X-Added: 3"),
                .get(.validated, .has("X-New", "2"), .has("X-Old", "1"), .has("X-Added", "3")),
                .get(
                    .hit, .has("X-New", "2"), .has("X-Old", "1"), .has("X-Added", "3"),
                    .has("Cache-Control", "max-age=100")))
            Case(
                "a 304 replaces all lines of a field",
                .answers("Cache-Control: max-age=0", "ETag: \"a\"", "X-Two: 1", "X-Two: 2"), .get(.fetched),
                .answers(304, "Cache-Control: max-age=100", "ETag: \"a\"", "X-Two: 3"), .get(.validated),
                .get(.hit, .lines("X-Two", ["3"])))
            Case(
                "a 304 does not change Content-Length",
                .answers("Cache-Control: max-age=0", "ETag: \"a\"", body: "hello"), .get(.fetched),
                .does(.head(304, "Cache-Control: max-age=100", "ETag: \"a\"", "Content-Length: 99")),
                .get(.stale, .body("hello")), .get(.hit, .body("hello"), .has("Content-Length", "5")))
            Case(
                "a 304's Content-Range is not stored", .answers("Cache-Control: max-age=0", "ETag: \"a\""),
                .get(.fetched),
                .answers(304, "Cache-Control: max-age=100", "ETag: \"a\"", "Content-Range: bytes 0-1/9"),
                .get(.validated), .get(.hit, .lacks("Content-Range")))
            Case(
                "a 304's fields for one hop are not stored",
                .answers("Cache-Control: max-age=0", "ETag: \"a\"", "X-Hop: 1"), .get(.fetched),
                .answers(
                    304, "Cache-Control: max-age=100", "ETag: \"a\"", "Connection: X-Hop", "X-Hop: 2",
                    "Proxy-Authenticate: Basic"),
                .get(.validated), .get(.hit, .has("X-Hop", "1"), .lacks("Proxy-Authenticate")))
            Case(
                "a 304 with private= removes the named fields",
                .answers("Cache-Control: max-age=0", "ETag: \"a\"", "X-Mine: 1"), .get(.fetched),
                .answers(304, "Cache-Control: max-age=100, private=\"X-Mine\"", "ETag: \"a\""), .get(.validated),
                .get(.hit, .lacks("X-Mine")))
            for field in ["Cache-Control: max-age=100, private", "Cache-Control: max-age=100, no-cache", "Vary: *"] {
                Case(
                    "a 304 with \(field) ends reuse", .answers("Cache-Control: max-age=1", "ETag: \"a\""),
                    .get(.fetched), .pause(1.1),
                    .answers(304, field, "ETag: \"a\""), .get(.validated), .answers(200, "Cache-Control: max-age=100"),
                    .get(.stale, .body("answer 3")))
            }
            Case(
                "a 304's Set-Cookie is not stored", .answers("Cache-Control: max-age=0", "ETag: \"a\""), .get(.fetched),
                .answers(304, "Cache-Control: max-age=100", "Set-Cookie: a=1", "ETag: \"a\""), .get(.validated),
                .answers(200, "Cache-Control: max-age=100"), .get(.stale, .status(200), .lacks("Set-Cookie")))
            Case(
                "a 304's Set-Cookie does not go to the waiters", .answers("Cache-Control: max-age=0", "ETag: \"a\""),
                .get(.fetched),
                .answersTogether(304, "Cache-Control: max-age=100", "Set-Cookie: a=1", "ETag: \"a\""),
                .together(4, .validated, .number(1, "Set-Cookie", "a=1")), .get(.hit, .lacks("Set-Cookie")))
            Case(
                "a field that a 304 names in private= goes to the leader",
                .answers("Cache-Control: max-age=0", "ETag: \"a\""),
                .get(.fetched),
                .answersTogether(
                    304, "Cache-Control: max-age=100, private=\"X-Mine\"", "X-Mine: 1", "ETag: \"a\""),
                .together(4, .validated, .number(1, "X-Mine", "1")), .get(.hit, .lacks("X-Mine")))
            Case(
                "a HEAD's Set-Cookie is not stored",
                .answers("Cache-Control: max-age=10", "Age: 20", "ETag: \"a\"", body: "hello"), .get(.fetched),
                .does(.head(200, "Cache-Control: max-age=100", "ETag: \"a\"", "Content-Length: 5", "Set-Cookie: a=1")),
                .head(.stale), .answers(200, "Cache-Control: max-age=100"),
                .get(.stale, .status(200), .lacks("Set-Cookie")))
            for directive in ["private", "no-store", "no-cache"] {
                Case(
                    "a HEAD's \(directive) ends reuse",
                    .answers("Cache-Control: max-age=10", "Age: 20", "ETag: \"a\"", body: "hello"), .get(.fetched),
                    .does(.head(200, "Cache-Control: max-age=100, \(directive)", "ETag: \"a\"", "Content-Length: 5")),
                    .head(.stale), .answers(200, "Cache-Control: max-age=100"), .get(.stale, .body("answer 3")))
            }
            Case(
                "a 304 that says no-store ends reuse", .answers("Cache-Control: max-age=0", "ETag: \"a\""),
                .get(.fetched),
                .answers(304, "Cache-Control: no-store", "ETag: \"a\""), .get(.validated), .answers(200, fresh),
                .get(.fetched))
        }
    }
}
