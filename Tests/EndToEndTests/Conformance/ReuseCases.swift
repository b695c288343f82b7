import Testing

extension Conformance {
    /// RFC 9111 §4: which stored response is used, and what the origin is asked when none may be.
    @Suite struct Reuse {
        @Test(arguments: keys) func `the target is the key`(_ one: Case) throws { try one.perform() }
        @Test(arguments: vary) func `a variant is chosen by the fields that Vary nominates`(_ one: Case) throws {
            try one.perform()
        }
        @Test(arguments: validation) func `a stale response is validated`(_ one: Case) throws { try one.perform() }
        @Test(arguments: conditions) func `conditions of the client are evaluated`(_ one: Case) throws {
            try one.perform()
        }
        @Test(arguments: stale) func `a stale response is used if permitted`(_ one: Case) throws {
            try one.perform()
        }
        @Test(arguments: collapsing) func `simultaneous requests collapse if permitted`(_ one: Case) throws {
            try one.perform()
        }

        private static let fresh = "Cache-Control: max-age=100"
        private static let old = "Cache-Control: max-age=10"
        private static let modified = "Last-Modified: Tue, 01 Jan 2019 00:00:00 GMT"

        @CaseTable static var keys: [Case] {
            Case(
                "another path is another response", .answers(fresh), .get(.fetched), .get(.fetched, .at("/a")),
                .get(.hit, .at("/a")))
            Case(
                "another query is another response", .answers(fresh), .get(.fetched, .at("?a=1")),
                .get(.fetched, .at("?a=2")), .get(.fetched, .at("?")), .get(.fetched), .get(.hit, .at("?a=1")))
            Case(
                "the order of a query matters", .answers(fresh), .get(.fetched, .at("?a=1&b=2")),
                .get(.fetched, .at("?b=2&a=1")))
            Case(
                "paths are not normalised, and are forwarded unchanged", .answers(fresh),
                .get(.fetched, .at("/a/../b"), .askedFor("/a/../b")), .get(.fetched, .at("/b")),
                .get(.fetched, .at("/%62"), .askedFor("/%62")))
            Case("the case of a path matters", .answers(fresh), .get(.fetched, .at("/A")), .get(.fetched, .at("/a")))
            Case(
                "another host is another response", .answers(fresh), .get(.fetched, "Host: one.example"),
                .get(.fetched, "Host: two.example"), .get(.hit, "Host: ONE.example"),
                .get(.hit, "Host: one.example:{port}")
            )
            Case(
                "an absolute target is the same as its parts", .answers(fresh), .get(.fetched),
                .get(.hit, .target("{scheme}://{host}@")))
            Case(
                "a dropped parameter", by: "drop", .answers(fresh),
                .get(.fetched, .at("?a=1&utm_source=x"), .askedFor("?a=1&utm_source=x")), .get(.hit, .at("?a=1")),
                .get(.hit, .at("?utm_source=y&a=1")), .get(.fetched, .at("?a=2")))
            Case(
                "kept parameters", by: "keep", .answers(fresh), .get(.fetched, .at("?page=1&x=1")),
                .get(.hit, .at("?x=2&page=1")), .get(.fetched, .at("?page=2")))
            Case(
                "no query in the key", by: "none", .answers(fresh), .get(.fetched, .at("?a=1")),
                .get(.hit, .at("?b=2")), .get(.hit))
            Case(
                "a sorted query", by: "sort", .answers(fresh), .get(.fetched, .at("?b=2&a=1"), .askedFor("?b=2&a=1")),
                .get(.hit, .at("?a=1&b=2")), .get(.fetched, .at("?a=1&b=3")))
            Case(
                "a field in the key", by: "tenant", .answers(fresh), .get(.fetched, "X-Tenant: 1"),
                .get(.fetched, "X-Tenant: 2"), .get(.fetched), .get(.hit, "X-Tenant: 1"), .get(.hit, "X-Tenant: 2"))
            Case(
                "a cookie in the key", by: "theme", .answers(fresh), .get(.fetched, "Cookie: theme=dark; id=1"),
                .get(.hit, "Cookie: id=2; theme=dark"), .get(.fetched, "Cookie: theme=light"))
            Case(
                "cookies are not in the key", .answers(fresh), .get(.fetched, "Cookie: a=1"), .get(.hit, "Cookie: a=2"))
        }

        @CaseTable static var vary: [Case] {
            Case(
                "the nominated field is the same", .answers(fresh, "Vary: X-V"), .get(.fetched, "X-V: 1"),
                .get(.hit, "X-V: 1"))
            Case(
                "the nominated field differs", .answers(fresh, "Vary: X-V"), .get(.fetched, "X-V: 1"),
                .get(.fetched, "X-V: 2"))
            Case("absent matches absent", .answers(fresh, "Vary: X-V"), .get(.fetched), .get(.hit))
            Case("absent is not present", .answers(fresh, "Vary: X-V"), .get(.fetched), .get(.fetched, "X-V: 1"))
            Case("present is not absent", .answers(fresh, "Vary: X-V"), .get(.fetched, "X-V: 1"), .get(.fetched))
            Case("empty is not absent", .answers(fresh, "Vary: X-V"), .get(.fetched, "X-V:"), .get(.fetched))
            Case(
                "other fields do not matter", .answers(fresh, "Vary: X-V"), .get(.fetched, "X-V: 1", "X-W: 1"),
                .get(.hit, "X-V: 1", "X-W: 2"))
            Case(
                "names in any case", .answers(fresh, "vary: x-v"), .get(.fetched, "X-V: 1"), .get(.hit, "x-V: 1"),
                .get(.fetched, "X-V: 2"))
            Case(
                "several variants are kept", .answers(fresh, "Vary: X-V", body: "one"), .get(.fetched, "X-V: 1"),
                .answers(fresh, "Vary: X-V", body: "two"), .get(.fetched, "X-V: 2"),
                .get(.hit, "X-V: 1", .body("one")), .get(.hit, "X-V: 2", .body("two")))
            Case(
                "two fields, both must match", .answers(fresh, "Vary: X-V, X-W"), .get(.fetched, "X-V: 1", "X-W: 1"),
                .get(.fetched, "X-V: 1", "X-W: 2"), .get(.fetched, "X-V: 2", "X-W: 1"),
                .get(.hit, "X-V: 1", "X-W: 1", .body("answer 1")))
            Case(
                "two Vary lines", .answers(fresh, "Vary: X-V", "Vary: X-W"), .get(.fetched, "X-V: 1", "X-W: 1"),
                .get(.fetched, "X-V: 1", "X-W: 2"))
            Case(
                "lines of the nominated field are combined", .answers(fresh, "Vary: Accept"),
                .get(.fetched, "Accept: a/1", "Accept: a/2"), .get(.hit, "Accept: a/1, a/2"),
                .get(.hit, "Accept: a/1,a/2"))
            Case(
                "a comma matters in a field not known to be a list", .answers(fresh, "Vary: X-V"),
                .get(.fetched, "X-V: 1,"), .get(.fetched, "X-V: 1"), .get(.fetched, "X-V: 1, 2"),
                .get(.fetched, "X-V: 1", "X-V: 2"))
            Case(
                "the order of values matters", .answers(fresh, "Vary: X-V"), .get(.fetched, "X-V: 1, 2"),
                .get(.fetched, "X-V: 2, 1"))
            Case(
                "the case of Accept-Encoding does not matter", .answers(fresh, "Vary: Accept-Encoding"),
                .get(.fetched, "Accept-Encoding: GZIP"), .get(.hit, "Accept-Encoding: gzip"))
            Case(
                "the case of other values matters", .answers(fresh, "Vary: X-V"), .get(.fetched, "X-V: a"),
                .get(.fetched, "X-V: A"))
            Case(
                "the most recent by Date of several that match",
                .answers(fresh, "Vary: X-V", "Date: {-20}", body: "older"), .get(.fetched, "X-V: 1"),
                .answers(fresh, "Vary: X-W", "Date: {0}", body: "newer"), .get(.fetched, "X-V: 2"),
                .get(.hit, "X-V: 1", .body("newer")))
            Case(
                "the most recent by Date, not by arrival", .answers(fresh, "Vary: X-V", "Date: {0}", body: "newer"),
                .get(.fetched, "X-V: 1"),
                .answers(fresh, "Vary: X-W", "Date: {-20}", body: "older"), .get(.fetched, "X-V: 2"),
                .get(.hit, "X-V: 1", .body("newer")))
            Case(
                "a response with Vary is preferred to a newer one without",
                .answers(fresh, "Vary: X-V", "Date: {-20}", body: "varied"), .get(.fetched, "X-V: 1"),
                .answers(fresh, "Date: {0}", body: "plain"), .get(.fetched, "X-V: 2"),
                .get(.hit, "X-V: 1", .body("varied")), .get(.hit, "X-V: 3", .body("plain")))
            Case(
                "another variant is not asked about by its strong tag",
                .answers(fresh, "Vary: X-V", "ETag: \"1\"", body: "one"), .get(.fetched, "X-V: 1"),
                .answers(fresh, "Vary: X-V", "ETag: \"1\"", body: "two"),
                .get(.fetched, "X-V: 2", .askedWithout("If-None-Match"), .body("two")),
                .get(.hit, "X-V: 1", .body("one")))
            Case(
                "another variant is not asked about by its date",
                .answers(fresh, "Vary: X-V", "Last-Modified: {-90}", body: "one"), .get(.fetched, "X-V: 1"),
                .answers(fresh, "Vary: X-V", "Last-Modified: {-90}", body: "two"),
                .get(.fetched, "X-V: 2", .askedWithout("If-Modified-Since"), .body("two")))
            Case(
                "another variant is not asked about by a weak tag",
                .answers(fresh, "Vary: X-V", "ETag: W/\"1\"", body: "one"), .get(.fetched, "X-V: 1"),
                .answers(fresh, "Vary: X-V", "ETag: W/\"1\"", body: "two"),
                .get(.fetched, "X-V: 2", .askedWithout("If-None-Match"), .body("two")))
            Case(
                "a weak tag confirms the request's own variant, not a newer one with the same tag",
                .answers("Cache-Control: max-age=0", "Vary: X-V", "ETag: W/\"1\"", "Date: {-20}", body: "one"),
                .get(.fetched, "X-V: 1"),
                .answers(fresh, "Vary: X-V", "ETag: W/\"1\"", "Date: {0}", body: "two"), .get(.fetched, "X-V: 2"),
                .answers(304, fresh, "Vary: X-V", "ETag: W/\"1\""), .get(.validated, "X-V: 1", .body("one")))
            Case(
                "variants validate with their own validators",
                .answers("Cache-Control: max-age=0", "Vary: X-V", "ETag: \"1\"", body: "one"), .get(.fetched, "X-V: 1"),
                .answers(304, fresh, "ETag: \"1\""), .get(.validated, "X-V: 1", .body("one")),
                .get(.hit, "X-V: 1", .body("one")))
        }

        @CaseTable static var validation: [Case] {
            Case(
                "a stale response is validated by its tag", .answers("Cache-Control: max-age=0", "ETag: \"a\""),
                .get(.fetched), .answers(304, "ETag: \"a\"", fresh),
                .get(.validated, .asked("If-None-Match", "\"a\"")), .get(.hit, .has("ETag", "\"a\"")))
            Case(
                "a weak tag is sent unchanged", .answers("Cache-Control: max-age=0", "ETag: W/\"a\""), .get(.fetched),
                .answers(304, "ETag: W/\"a\"", fresh), .get(.validated, .asked("If-None-Match", "W/\"a\"")), .get(.hit))
            Case(
                "Last-Modified is sent unchanged",
                .answers("Cache-Control: max-age=0", "Last-Modified: Tuesday, 01-Jan-19 00:00:00 GMT"), .get(.fetched),
                .answers(304, fresh), .get(.validated, .asked("If-Modified-Since", "Tuesday, 01-Jan-19 00:00:00 GMT")),
                .get(.hit))
            Case(
                "Last-Modified validates", .answers("Cache-Control: max-age=0", modified), .get(.fetched),
                .answers(304, fresh), .get(.validated, .asked("If-Modified-Since", "Tue, 01 Jan 2019 00:00:00 GMT")),
                .get(.hit))
            Case(
                "both validators are sent", .answers("Cache-Control: max-age=0", modified, "ETag: \"a\""),
                .get(.fetched), .answers(304, fresh, "ETag: \"a\""),
                .get(
                    .validated, .asked("If-Modified-Since", "Tue, 01 Jan 2019 00:00:00 GMT"),
                    .asked("If-None-Match", "\"a\"")), .get(.hit))
            Case(
                "a full response replaces the stored one", .answers("Cache-Control: max-age=0", "ETag: \"a\""),
                .get(.fetched), .answers(fresh, "ETag: \"b\""), .get(.validated), .get(.hit, .has("ETag", "\"b\"")))
            Case(
                "a 304 renews the age", .answers("Cache-Control: max-age=50", "Age: 60", "ETag: \"a\""), .get(.fetched),
                .answers(304, "Cache-Control: max-age=50", "ETag: \"a\""), .get(.validated, .age(0...20)),
                .get(.hit, .age(0...20)))
            Case(
                "a 304 without lifetime restarts the old lifetime",
                .answers("Cache-Control: max-age=50", "Age: 60", "ETag: \"a\""), .get(.fetched),
                .answers(304, "ETag: \"a\""), .get(.validated), .get(.hit, .age(0...20)))
            Case(
                "the Age of a 304 counts", .answers("Cache-Control: max-age=50", "Age: 60", "ETag: \"a\""),
                .get(.fetched), .answers(304, "Age: 30", "ETag: \"a\""), .get(.validated), .get(.hit, .age(30...49)))
            Case(
                "a 304 with another strong tag freshens no response",
                .answers("Cache-Control: max-age=0", "ETag: \"a\""),
                .get(.fetched), .answers(304, fresh, "ETag: \"b\""), .get(.failed, .status(502)), .answers(200, fresh),
                .get(.stale, .body("answer 3")))
            Case(
                "no-cache is validated each time", .answers("Cache-Control: max-age=100, no-cache", "ETag: \"a\""),
                .get(.fetched), .answers(304, "Cache-Control: max-age=100, no-cache", "ETag: \"a\""), .get(.validated),
                .get(.validated))
            for status in [400, 404, 410, 302] {
                Case(
                    "a \(status) on validation is sent to the client",
                    .answers("Cache-Control: max-age=0", "ETag: \"a\""),
                    .get(.fetched), .answers(status, fresh), .get(.validated), .get(.hit, .status(status)))
            }
            for status in [500, 502, 503, 504] {
                Case(
                    "a \(status) on validation is forwarded where stale is not allowed",
                    .answers(old, "Age: 20", "ETag: \"a\""), .get(.fetched), .answers(status), .get(.validated))
            }
            Case(
                "after a 5xx the response is still stored", .answers(old, "Age: 20", "ETag: \"a\""),
                .get(.fetched), .answers(500), .get(.validated, .body("answer 2")), .answers(304, fresh, "ETag: \"a\""),
                .get(.validated, .body("answer 1")))
            Case(
                "a HEAD response that agrees freshens the stored one",
                .answers(old, "Age: 20", "ETag: \"a\"", body: "hello"),
                .get(.fetched), .does(.head(200, fresh, "ETag: \"a\"", "Content-Length: 5", "X-New: 1")), .head(.stale),
                .get(.hit, .has("X-New", "1"), .body("hello")))
            Case(
                "a HEAD response with another tag makes the stored one stale", .answers(fresh, "ETag: \"a\""),
                .get(.fetched),
                .does(.head(200, fresh, "ETag: \"b\"", "Content-Length: 5")), .head(.stale, "Cache-Control: no-cache"),
                .answers(fresh, "ETag: \"b\""), .get(.validated))
            Case(
                "a HEAD response with another length makes the stored one stale",
                .answers(fresh, "ETag: \"a\"", body: "hello"),
                .get(.fetched), .does(.head(200, fresh, "ETag: \"a\"", "Content-Length: 6")),
                .head(.stale, "Cache-Control: no-cache"), .answers(fresh, "ETag: \"b\""), .get(.validated))
        }

        @CaseTable static var conditions: [Case] {
            for (field, status) in [
                ("If-None-Match: \"a\"", 304), ("If-None-Match: W/\"a\"", 304), ("If-None-Match: \"x\", \"a\"", 304),
                ("If-None-Match: *", 304), ("If-None-Match: \"b\"", 200), ("If-None-Match: a", 200),
                ("If-Modified-Since: Tue, 01 Jan 2019 00:00:00 GMT", 304),
                ("If-Modified-Since: Wed, 02 Jan 2019 00:00:00 GMT", 304),
                ("If-Modified-Since: Mon, 31 Dec 2018 00:00:00 GMT", 200),
                ("If-Modified-Since: Tuesday, 01-Jan-19 00:00:00 GMT", 304),
                ("If-Modified-Since: Tue Jan  1 00:00:00 2019", 304), ("If-Modified-Since: yesterday", 200),
            ] {
                Case(
                    "\(field) of a stored response is \(status)", .answers(fresh, "ETag: \"a\"", modified, body: "x"),
                    .get(.fetched),
                    .get(.hit, .with(field), .status(status), .body(status == 304 ? "" : "x"), .has("ETag", "\"a\"")))
            }
            Case(
                "If-None-Match takes precedence over If-Modified-Since", .answers(fresh, "ETag: \"a\"", modified),
                .get(.fetched),
                .get(.hit, "If-None-Match: \"b\"", "If-Modified-Since: Tue, 01 Jan 2019 00:00:00 GMT", .status(200)))
            Case(
                "If-Modified-Since is compared with Date if there is no Last-Modified", .answers(fresh, "Date: {-50}"),
                .get(.fetched), .get(.hit, "If-Modified-Since: {-10}", .status(304), .body("")),
                .get(.hit, "If-Modified-Since: {-80}", .status(200)))
            Case(
                "a 304 from the store has Age, Date and Cache-Control and no content fields",
                .answers(fresh, "ETag: \"a\"", "Content-Type: text/plain", "Content-Language: en"), .get(.fetched),
                .get(
                    .hit, "If-None-Match: \"a\"", .status(304), .body(""), .has("Cache-Control", "max-age=100"),
                    .contains("Date", "GMT"), .lacks("Content-Type"), .lacks("Content-Language"),
                    .lacks("Content-Length")))
            Case(
                "HEAD with If-None-Match", .answers(fresh, "ETag: \"a\""), .get(.fetched),
                .head(.hit, "If-None-Match: \"a\"", .status(304)))
            Case(
                "a stored 404 does not turn into 304", .answers(404, fresh, "ETag: \"a\""), .get(.fetched),
                .get(.hit, "If-None-Match: \"a\"", .status(404)))
            Case(
                "a client's condition does not keep the full response from the store", .answers(fresh, "ETag: \"a\""),
                .get(.fetched, "If-None-Match: \"a\"", .status(304), .body("")), .get(.hit, .body("answer 1")))
            Case(
                "a 304 for a tag that the client lacks becomes the full response",
                .answers("Cache-Control: max-age=0", "ETag: \"a\""), .get(.fetched),
                .answers(304, fresh, "ETag: \"a\""),
                .get(.validated, "If-None-Match: \"z\"", .status(200), .body("answer 1")))
            Case(
                "a validated response is a 304 to a client that has the response",
                .answers("Cache-Control: max-age=0", "ETag: \"a\""), .get(.fetched),
                .answers(304, fresh, "ETag: \"a\""), .get(.validated, "If-None-Match: \"a\"", .status(304), .body("")))
            Case(
                "the client's tags are sent to the origin too", .answers("Cache-Control: max-age=0", "ETag: \"a\""),
                .get(.fetched), .answers(304, fresh, "ETag: \"c\""),
                .get(
                    .validated, "If-None-Match: \"c\"", .askedContaining("If-None-Match", "\"a\""),
                    .askedContaining("If-None-Match", "\"c\""), .status(304), .body("")))
            Case(
                "a 304 for a tag that only the client has is forwarded, and freshens no response",
                .answers("Cache-Control: max-age=0", "ETag: \"a\"", body: "kept"), .get(.fetched),
                .answers(304, fresh, "ETag: \"c\"", "X-New: 1"),
                .get(
                    .validated, "If-None-Match: \"c\"", .status(304), .body(""), .has("ETag", "\"c\""),
                    .has("Cache-Control", "max-age=100"), .has("X-New", "1"),
                    .contains("Cache-Status", "fwd-status=304"), .lacks("Age")),
                .answers(304, fresh, "ETag: \"a\""),
                .get(.validated, .asked("If-None-Match", "\"a\""), .body("kept"), .lacks("X-New")))
            Case(
                "a weak tag of the client is sent unchanged", .answers("Cache-Control: max-age=0", "ETag: \"a\""),
                .get(.fetched), .answers(304, fresh, "ETag: W/\"c\""),
                .get(
                    .validated, "If-None-Match: W/\"c\"", .asked("If-None-Match", "\"a\", W/\"c\""), .status(304),
                    .body(""), .has("ETag", "W/\"c\"")))
            Case(
                "the client's tag is compared weakly with that of the 304",
                .answers("Cache-Control: max-age=0", "ETag: \"a\""), .get(.fetched),
                .answers(304, fresh, "ETag: W/\"c\""), .get(.validated, "If-None-Match: \"c\"", .status(304), .body(""))
            )
            Case(
                "a client's weak tag that matches the stored one weakly is answered from the store",
                .answers("Cache-Control: max-age=0", "ETag: \"a\""), .get(.fetched),
                .answers(304, fresh, "ETag: \"a\""),
                .get(.validated, "If-None-Match: W/\"a\"", .status(304), .body("")), .get(.hit, .body("answer 1")))
            Case(
                "the client's * is not forwarded, and any response becomes a 304",
                .answers("Cache-Control: max-age=0", "ETag: \"a\""), .get(.fetched),
                .answers(fresh, "ETag: \"b\"", body: "new"),
                .get(
                    .validated, "If-None-Match: *", .asked("If-None-Match", "\"a\""), .status(304), .body(""),
                    .has("ETag", "\"b\"")), .get(.hit, .body("new")))
            Case(
                "the client's tags are not sent if only a date is stored",
                .answers("Cache-Control: max-age=0", modified), .get(.fetched), .answers(304, fresh),
                .get(
                    .validated, "If-None-Match: \"c\"", .asked("If-Modified-Since", "Tue, 01 Jan 2019 00:00:00 GMT"),
                    .askedWithout("If-None-Match"), .status(200), .body("answer 1")))
            Case(
                "the client's date is not sent, and is compared with the validated response",
                .answers("Cache-Control: max-age=0", modified), .get(.fetched),
                .answers(304, "Cache-Control: max-age=0"),
                .get(
                    .validated, "If-Modified-Since: Wed, 02 Jan 2019 00:00:00 GMT",
                    .asked("If-Modified-Since", "Tue, 01 Jan 2019 00:00:00 GMT"), .status(304), .body("")),
                .get(
                    .validated, "If-Modified-Since: Mon, 31 Dec 2018 00:00:00 GMT",
                    .asked("If-Modified-Since", "Tue, 01 Jan 2019 00:00:00 GMT"), .status(200), .body("answer 1")))
            Case(
                "the client's date is not sent if only a tag is stored",
                .answers("Cache-Control: max-age=0", "ETag: \"a\""), .get(.fetched),
                .answers(304, fresh, "ETag: \"a\""),
                .get(
                    .validated, "If-Modified-Since: Tue, 01 Jan 2019 00:00:00 GMT", .asked("If-None-Match", "\"a\""),
                    .askedWithout("If-Modified-Since"), .status(200), .body("answer 1")))
            Case(
                "HEAD with a tag that only the client has", .answers("Cache-Control: max-age=0", "ETag: \"a\""),
                .get(.fetched), .answers(304, fresh, "ETag: \"c\""),
                .head(.validated, "If-None-Match: \"c\"", .askedContaining("If-None-Match", "\"c\""), .status(304)))
            Case(
                "If-Match is for the origin", .answers(fresh, "ETag: \"a\""), .get(.fetched), .answers(412),
                .get(.fetched, "If-Match: \"b\"", .asked("If-Match", "\"b\""), .status(412)))
            Case(
                "a 412 to the client's If-Match is not shared", .answers(412, fresh),
                .get(.fetched, "If-Match: \"b\""), .answers(fresh), .get(.fetched))
            Case(
                "a 412 to the client's If-Unmodified-Since is not shared", .answers(412, fresh),
                .get(.fetched, "If-Unmodified-Since: Mon, 31 Dec 2018 00:00:00 GMT"), .answers(fresh), .get(.fetched))
            Case(
                "a 404 to a client's If-Match is not shared either", .answers(404, fresh),
                .get(.fetched, "If-Match: \"b\""), .answers(fresh), .get(.fetched))
            Case(
                "If-Unmodified-Since is for the origin", .answers(fresh, modified), .get(.fetched), .answers(412),
                .get(.fetched, "If-Unmodified-Since: Mon, 31 Dec 2018 00:00:00 GMT", .status(412)))
            Case(
                "a request with no-store keeps its conditions", .answers(304, "ETag: \"a\""),
                .get(
                    .fetched, "Cache-Control: no-store", "If-None-Match: \"a\"", .asked("If-None-Match", "\"a\""),
                    .status(304)))
            Case(
                "If-None-Match on PUT is for the origin", .answers(fresh, "ETag: \"a\""), .get(.fetched), .answers(412),
                .send("PUT", .fetched, "If-None-Match: *", .asked("If-None-Match", "*"), .status(412)))
        }

        @CaseTable static var stale: [Case] {
            let busy: [Int] = [500, 502, 503, 504]
            for status in busy {
                Case(
                    "stale-if-error covers a \(status)",
                    .answers("Cache-Control: max-age=10, stale-if-error=600", "Age: 20"), .get(.fetched),
                    .answers(status), .get(.stale, .age(20...50)))
            }
            Case(
                "stale-if-error does not cover a 501",
                .answers("Cache-Control: max-age=10, stale-if-error=600", "Age: 20"), .get(.fetched), .answers(501),
                .get(.fetched, .status(501)))
            Case(
                "stale-if-error does not cover a 404",
                .answers("Cache-Control: max-age=10, stale-if-error=600", "Age: 20"), .get(.fetched), .answers(404),
                .get(.fetched, .status(404)))
            Case(
                "stale-if-error that is over", .answers("Cache-Control: max-age=10, stale-if-error=5", "Age: 20"),
                .get(.fetched), .answers(503), .get(.fetched, .status(503)))
            Case(
                "stale-if-error covers a connection that ends",
                .answers("Cache-Control: max-age=10, stale-if-error=600", "Age: 20"), .get(.fetched), .does(.close),
                .get(.stale))
            Case(
                "stale-if-error covers a silent origin", by: "impatient",
                .answers("Cache-Control: max-age=10, stale-if-error=600", "Age: 20"), .get(.fetched), .does(.silence),
                .get(.stale))
            for directive in ["must-revalidate", "proxy-revalidate", "s-maxage=10", "no-cache"] {
                Case(
                    "\(directive) takes precedence over stale-if-error",
                    .answers("Cache-Control: max-age=10, stale-if-error=600, \(directive)", "Age: 20", "ETag: \"a\""),
                    .get(.fetched), .answers(503), .get(.validated, .status(503)))
                Case(
                    "\(directive) is not served stale to a disconnected client",
                    .answers("Cache-Control: max-age=10, \(directive)", "Age: 20", "ETag: \"a\""), .get(.fetched),
                    .does(.close), .get(.failed, .status(502)))
            }
            Case(
                "must-revalidate and a silent origin: 504", by: "impatient",
                .answers("Cache-Control: max-age=10, must-revalidate", "Age: 20", "ETag: \"a\""), .get(.fetched),
                .does(.silence), .get(.failed, .status(504)))
            Case(
                "disconnected: a stale response is served without a directive", .answers(old, "Age: 20", "ETag: \"a\""),
                .get(.fetched), .does(.close), .get(.stale))
            Case(
                "must-revalidate: fresh is still served", .answers("Cache-Control: max-age=100, must-revalidate"),
                .get(.fetched), .get(.hit))
            Case(
                "must-revalidate is validated when stale",
                .answers("Cache-Control: max-age=1, must-revalidate", "ETag: \"a\""), .get(.fetched), .pause(1.1),
                .answers(304, "ETag: \"a\""), .get(.validated))
            Case(
                "stale-while-revalidate serves at once and refreshes",
                .answers("Cache-Control: max-age=10, stale-while-revalidate=600", "Age: 20"), .get(.fetched),
                .answersSlowly(0.5, 200, fresh), .get(.stale, .body("answer 1"), .age(20...50)), .originAsked(2),
                .fetchesEnd, .get(.hit, .body("answer 2")))
            Case(
                "stale-while-revalidate that is over",
                .answers("Cache-Control: max-age=10, stale-while-revalidate=5", "Age: 20"), .get(.fetched),
                .answers(fresh), .get(.fetched))
            Case(
                "stale-while-revalidate begins when max-age ends",
                .answers("Cache-Control: max-age=1, stale-while-revalidate=600"), .get(.fetched), .pause(1.1),
                .answers(fresh), .get(.stale, .body("answer 1")), .originAsked(2))
            Case(
                "must-revalidate takes precedence over stale-while-revalidate",
                .answers(
                    "Cache-Control: max-age=10, stale-while-revalidate=600, must-revalidate", "Age: 20", "ETag: \"a\""),
                .get(.fetched), .get(.validated))
            Case(
                "a client that limits the age gets no stale response",
                .answers("Cache-Control: max-age=10, stale-while-revalidate=600", "Age: 20", "ETag: \"a\""),
                .get(.fetched), .get(.validated, "Cache-Control: max-age=1000"))
            Case(
                "a failed refresh leaves the stored response",
                .answers("Cache-Control: max-age=10, stale-while-revalidate=600", "Age: 20"), .get(.fetched),
                .answers(500), .get(.stale), .originAsked(2), .fetchesEnd, .get(.stale, .body("answer 1")))
        }

        @CaseTable static var collapsing: [Case] {
            Case("a fresh response is one fetch for all", .answersTogether(200, fresh), .together(5, .fetched))
            Case(
                "a response without lifetime is one fetch for all waiters", .answersTogether(200),
                .together(5, .fetched))
            Case(
                "max-age=0 is one fetch for all waiters", .answersTogether(200, "Cache-Control: max-age=0"),
                .together(5, .fetched))
            for directive in ["private", "no-store", "no-cache"] {
                Case(
                    "\(directive) is a fetch for each", .answersTogether(200, "Cache-Control: \(directive)"),
                    .together(4, .fetchedEach))
            }
            Case(
                "Set-Cookie is a fetch for each", .answersTogether(200, fresh, "Set-Cookie: a=1"),
                .together(4, .fetchedEach))
            Case(
                "each request with no-store is a fetch", .answersTogether(200, fresh),
                .together(4, .fetchedEach, "Cache-Control: no-store"))
            Case("an error is one fetch for all waiters", .answersTogether(503), .together(5, .fetched))
            Case(
                "a validation is one fetch for all waiters", .answers("Cache-Control: max-age=0", "ETag: \"a\""),
                .get(.fetched), .answersTogether(304, fresh, "ETag: \"a\""), .together(5, .validated))
        }
    }
}
