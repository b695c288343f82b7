import Testing

extension Conformance {
    /// Parts of representations (RFC 9110 §14, RFC 9111 §3.3 and §3.4), trailers and codings.
    @Suite struct Content {
        @Test(arguments: ranges) func `ranges are served from a full stored response`(_ one: Case) throws {
            try one.perform()
        }
        @Test(arguments: parts) func `parts are stored, combined and completed`(_ one: Case) throws {
            try one.perform()
        }
        @Test(arguments: framing) func `trailers and codings are preserved`(_ one: Case) throws { try one.perform() }

        private static let fresh = "Cache-Control: max-age=100"
        private static let tag = "ETag: \"a\""
        private static let letters = "abcdefghijklmnopqrstuvwxyz"

        @CaseTable static var ranges: [Case] {
            for (range, part, contentRange) in [
                ("0-4", "abcde", "0-4"), ("5-5", "f", "5-5"), ("20-", "uvwxyz", "20-25"), ("-3", "xyz", "23-25"),
                ("25-99", "z", "25-25"), ("-99", letters, "0-25"),
                ("0-99999999999999999999", letters, "0-25"),
            ] {
                Case(
                    "bytes=\(range)", .answers(fresh, tag, body: letters), .get(.fetched),
                    .get(
                        .hit, "Range: bytes=\(range)", .status(206), .body(part),
                        .has("Content-Range", "bytes \(contentRange)/26"), .has("ETag", "\"a\""),
                        .has("Content-Length", "\(part.utf8.count)")))
            }
            for range in ["bytes=26-30", "bytes=-0", "bytes=99-"] {
                Case(
                    "\(range) cannot be satisfied", .answers(fresh, tag, body: letters), .get(.fetched),
                    .get(.hit, "Range: \(range)", .status(416), .has("Content-Range", "bytes */26")))
            }
            for range in [
                "pages=1-2", "bytes=4-2", "bytes=a-b", "bytes=", "bytes", "bytes=1", "bytes 0-4", "bytes=0-4;5-6",
            ] {
                Case(
                    "\(range) is ignored", .answers(fresh, tag, body: letters), .get(.fetched),
                    .get(.hit, "Range: \(range)", .status(200), .body(letters)))
            }
            Case(
                "two ranges are two parts",
                .answers(fresh, tag, "Content-Type: text/x", body: String(repeating: letters, count: 40)),
                .get(.fetched),
                .get(
                    .hit, "Range: bytes=0-1,1000-1001", .status(206),
                    .contains("Content-Type", "multipart/byteranges; boundary="), .lacks("Content-Range")))
            Case(
                "overlapping ranges are joined to one", .answers(fresh, tag, body: letters), .get(.fetched),
                .get(
                    .hit, "Range: bytes=0-4,3-9", .status(206), .body("abcdefghij"),
                    .has("Content-Range", "bytes 0-9/26")))
            Case(
                "one satisfiable range of two", .answers(fresh, tag, body: letters), .get(.fetched),
                .get(.hit, "Range: bytes=0-1,90-99", .status(206), .body("ab"), .has("Content-Range", "bytes 0-1/26")))
            Case(
                "too many ranges get the full response", .answers(fresh, tag, body: letters), .get(.fetched),
                .get(
                    .hit,
                    "Range: bytes=0-0,2-2,4-4,6-6,8-8,10-10,12-12,14-14,16-16,18-18,20-20,22-22,24-24,1-1,3-3,5-5,7-7",
                    .status(200), .body(letters)))
            Case(
                "If-Range with the strong tag", .answers(fresh, tag, body: letters), .get(.fetched),
                .get(.hit, "Range: bytes=0-4", "If-Range: \"a\"", .status(206), .body("abcde")))
            Case(
                "If-Range with another tag", .answers(fresh, tag, body: letters), .get(.fetched),
                .get(.hit, "Range: bytes=0-4", "If-Range: \"b\"", .status(200), .body(letters)))
            Case(
                "If-Range with a weak tag", .answers(fresh, "ETag: W/\"a\"", body: letters), .get(.fetched),
                .get(.hit, "Range: bytes=0-4", "If-Range: W/\"a\"", .status(200), .body(letters)))
            Case(
                "If-Range with the exact date",
                .answers(fresh, "Last-Modified: Tue, 01 Jan 2019 00:00:00 GMT", body: letters), .get(.fetched),
                .get(.hit, "Range: bytes=0-4", "If-Range: Tue, 01 Jan 2019 00:00:00 GMT", .status(206), .body("abcde")))
            Case(
                "If-Range with a later date",
                .answers(fresh, "Last-Modified: Tue, 01 Jan 2019 00:00:00 GMT", body: letters), .get(.fetched),
                .get(.hit, "Range: bytes=0-4", "If-Range: Wed, 02 Jan 2019 00:00:00 GMT", .status(200), .body(letters)))
            Case(
                "If-None-Match takes precedence over Range", .answers(fresh, tag, body: letters), .get(.fetched),
                .get(.hit, "Range: bytes=0-4", "If-None-Match: \"a\"", .status(304), .body("")))
            Case(
                "HEAD has no ranges", .answers(fresh, tag, body: letters), .get(.fetched),
                .head(.hit, "Range: bytes=0-4", .status(200), .has("Content-Length", "26")))
            Case(
                "a stored 404 has no ranges", .answers(404, fresh, body: letters), .get(.fetched),
                .get(.hit, "Range: bytes=0-4", .status(404), .body(letters)))
            Case(
                "the response to an unshared fetch is forwarded unchanged", .answers(fresh, tag, body: letters),
                .get(
                    .fetched, "Cache-Control: no-store", "Range: bytes=0-4", .status(200), .body(letters),
                    .lacks("Content-Range")))
            Case(
                "near ranges are joined to one", .answers(fresh, tag, body: letters), .get(.fetched),
                .get(.hit, "Range: bytes=0-1,4-5", .status(206), .body("abcdef"), .has("Content-Range", "bytes 0-5/26"))
            )
            Case(
                "a range of a response in flight",
                .does(
                    .head(200, fresh, tag, "Content-Length: 26"), .text("abcdefghijklm"), .wait(.seconds(1)),
                    .text("nopqrstuvwxyz")), .begin(), .get(.stale, "Range: bytes=0-4", .status(206), .body("abcde")),
                .end(.body(letters)))
            Case(
                "a Range miss on an origin that ignores Range stores the full response",
                .answers(fresh, tag, body: letters),
                .get(.fetched, "Range: bytes=0-4", .status(206), .body("abcde")), .get(.hit, .body(letters)),
                .get(.hit, "Range: bytes=0-4", .status(206), .body("abcde")))
        }

        private static func part(_ range: String, _ text: String, _ fields: String...) -> Move {
            .script(
                Reply(
                    status: 206, fields: [fresh, "Content-Range: bytes \(range)"] + (fields.isEmpty ? [tag] : fields),
                    body: text))
        }

        /// By a route that asks for parts (`range-misses: part`), but for what is about a whole.
        @CaseTable static var parts: [Case] {
            Case(
                "a part goes to the client that asked", by: "parts", part("0-4/26", "abcde"),
                .get(.fetched, "Range: bytes=0-4", .status(206), .has("Content-Range", "bytes 0-4/26")))
            Case(
                "a part is never served as the full response", by: "parts", part("0-4/26", "abcde"),
                .get(.fetched, "Range: bytes=0-4"), .answers(fresh, tag, body: letters),
                .get(.stale, .status(200), .body(letters)))
            Case(
                "a stored part serves the same range", by: "parts", part("0-4/26", "abcde"),
                .get(.fetched, "Range: bytes=0-4"),
                .get(.hit, "Range: bytes=0-4", .status(206), .body("abcde"), .has("Content-Range", "bytes 0-4/26")))
            Case(
                "a stored part serves a range inside it", by: "parts", part("0-9/26", "abcdefghij"),
                .get(.fetched, "Range: bytes=0-9"),
                .get(.hit, "Range: bytes=2-4", .status(206), .body("cde"), .has("Content-Range", "bytes 2-4/26")))
            Case(
                "a suffix inside a stored part", by: "parts", part("16-25/26", "qrstuvwxyz"),
                .get(.fetched, "Range: bytes=16-25"), .get(.hit, "Range: bytes=-3", .status(206), .body("xyz")))
            Case(
                "two parts under one strong tag combine", by: "parts", part("0-4/26", "abcde"),
                .get(.fetched, "Range: bytes=0-4"), part("5-9/26", "fghij"),
                .get(.stale, "Range: bytes=5-9", .status(206), .body("fghij")),
                .get(.hit, "Range: bytes=3-6", .status(206), .body("defg")))
            Case(
                "only missing bytes are fetched", by: "parts", part("0-4/26", "abcde"),
                .get(.fetched, "Range: bytes=0-4"), part("5-9/26", "fghij"),
                .get(.stale, "Range: bytes=0-9", .status(206), .body("abcdefghij"), .asked("Range", "bytes=5-9")))
            Case(
                "parts without a gap serve the full response", by: "parts", part("0-12/26", "abcdefghijklm"),
                .get(.fetched, "Range: bytes=0-12"), part("13-25/26", "nopqrstuvwxyz"),
                .get(.stale, "Range: bytes=13-25", .status(206), .body("nopqrstuvwxyz")),
                .get(.hit, .status(200), .body(letters), .has("Content-Length", "26"), .lacks("Content-Range")))
            Case(
                "parts under two tags do not combine", by: "parts", part("0-4/26", "abcde"),
                .get(.fetched, "Range: bytes=0-4"), part("5-9/26", "FGHIJ", "ETag: \"b\""),
                .get(.stale, "Range: bytes=5-9", .status(206), .body("FGHIJ")),
                part("3-6/26", "DEFG", "ETag: \"b\""), .get(.stale, "Range: bytes=3-6", .status(206), .body("DEFG")))
            Case(
                "a part with a weak tag serves ranges inside, and is not combined", by: "parts",
                part("0-4/26", "abcde", "ETag: W/\"a\""), .get(.fetched, "Range: bytes=0-4"),
                .get(.hit, "Range: bytes=1-3", .status(206), .body("bcd")),
                part("3-6/26", "defg", "ETag: W/\"a\""),
                .get(.stale, "Range: bytes=3-6", .status(206), .body("defg"), .asked("Range", "bytes=3-6")))
            Case(
                "a part without a tag serves ranges inside, and is not combined", by: "parts",
                part("0-4/26", "abcde", "X: y"), .get(.fetched, "Range: bytes=0-4"),
                .get(.hit, "Range: bytes=1-3", .status(206), .body("bcd")), part("3-6/26", "defg", "X: y"),
                .get(.stale, "Range: bytes=3-6", .status(206), .body("defg"), .asked("Range", "bytes=3-6")))
            Case(
                "a part of unknown complete length serves its range", by: "parts", part("0-4/*", "abcde"),
                .get(.fetched, "Range: bytes=0-4"), .get(.stale, "Range: bytes=0-4", .status(206), .body("abcde")))
            Case(
                "a multipart response is forwarded and not stored", by: "parts",
                .does(
                    .head(206, fresh, tag, "Content-Type: multipart/byteranges; boundary=B", "Content-Length: 8"),
                    .text("--B--\r\n\r")), .get(.fetched, "Range: bytes=0-1,20-21", .status(206)),
                .answers(fresh, tag, body: letters), .get(.stale, .status(200), .body(letters)))
            Case(
                "a 416 to one client's Range is not shared", by: "parts",
                .answers(416, fresh, "Content-Range: bytes */26"), .get(.fetched, "Range: bytes=90-99"),
                .answers(fresh, tag, body: letters), .get(.fetched))
            Case(
                "a stale part is validated before use", by: "parts",
                .script(
                    Reply(
                        status: 206,
                        fields: ["Cache-Control: max-age=10", "Age: 20", tag, "Content-Range: bytes 0-4/26"],
                        body: "abcde")), .get(.fetched, "Range: bytes=0-4"),
                .answers(304, fresh, tag), .get(.validated, "Range: bytes=0-4", .status(206), .body("abcde")))
            Case(
                "range misses on one object collapse", by: "parts",
                .script(
                    Reply(
                        status: 206, fields: [fresh, tag, "Content-Range: bytes 0-4/26"], body: "abcde",
                        waitsForAll: true)),
                .together(4, .fetched, "Range: bytes=0-4", .body("abcde")))
            Case(
                "a body cut off is completed by a range",
                .does(.head(200, fresh, tag, "Content-Length: 26"), .text("abcdefghij"), .close),
                .get(.fetched, .cutOff),
                .script(
                    Reply(status: 206, fields: [fresh, tag, "Content-Range: bytes 10-25/26"], body: "klmnopqrstuvwxyz")),
                .get(.stale, .status(200), .body(letters), .asked("Range", "bytes=10-"), .asked("If-Range", "\"a\"")),
                .get(.hit, .body(letters)))
            Case(
                "a body cut off without a strong tag is not kept",
                .does(.head(200, fresh, "ETag: W/\"a\"", "Content-Length: 26"), .text("abcdefghij"), .close),
                .get(.fetched, .cutOff), .answers(fresh, tag, body: letters),
                .get(.fetched, .body(letters), .askedWithout("Range")))
            Case(
                "a body cut off that has changed is fetched again",
                .does(.head(200, fresh, tag, "Content-Length: 26"), .text("abcdefghij"), .close),
                .get(.fetched, .cutOff), .answers(fresh, "ETag: \"b\"", body: "other"),
                .get(.fetched, .status(200), .body("other"), .asked("If-Range", "\"a\"")), .get(.hit, .body("other")))
            Case(
                "a range of a body cut off is served",
                .does(.head(200, fresh, tag, "Content-Length: 26"), .text("abcdefghij"), .close),
                .get(.fetched, .cutOff),
                .get(
                    .hit, "Range: bytes=0-9", .status(206), .body("abcdefghij"), .has("Content-Range", "bytes 0-9/26")),
                .get(.hit, "Range: bytes=26-", .status(416), .has("Content-Range", "bytes */26")))
            Case(
                "a fresh part answers If-None-Match", by: "parts", part("0-4/26", "abcde"),
                .get(.fetched, "Range: bytes=0-4"), .get(.hit, "If-None-Match: \"a\"", .status(304), .body("")))
            Case(
                "If-Range on a part of unknown complete length", by: "parts", part("0-4/*", "abcde"),
                .get(.fetched, "Range: bytes=0-4"),
                .get(
                    .hit, "Range: bytes=0-4", "If-Range: \"a\"", .status(206), .body("abcde"),
                    .has("Content-Range", "bytes 0-4/*")))
            Case(
                "a part for Authorization is not shared, and leaves the stored part alone", by: "parts",
                part("0-4/26", "abcde"),
                .get(.fetched, "Range: bytes=0-4"), part("5-9/26", "fghij"),
                .get(.fetched, "Range: bytes=0-9", "Authorization: x", .status(206), .body("abcdefghij")),
                .get(.hit, "Range: bytes=0-4", .status(206)),
                .get(.stale, "Range: bytes=5-9", .status(206), .asked("If-Range", "\"a\"")))
            Case(
                "a private part is not stored", by: "parts",
                .script(
                    Reply(
                        status: 206, fields: ["Cache-Control: private, max-age=9", tag, "Content-Range: bytes 0-4/26"],
                        body: "abcde")), .get(.fetched, "Range: bytes=0-4", .status(206)),
                .get(.fetched, "Range: bytes=0-4"))
            Case(
                "a no-store part is not stored", by: "parts",
                .script(
                    Reply(
                        status: 206, fields: ["Cache-Control: no-store", tag, "Content-Range: bytes 0-4/26"],
                        body: "abcde")), .get(.fetched, "Range: bytes=0-4", .status(206)),
                .get(.fetched, "Range: bytes=0-4"))
            Case(
                "a part for Authorization is not stored", by: "parts", part("0-4/26", "abcde"),
                .get(.fetched, "Range: bytes=0-4", "Authorization: x"), .get(.fetched, "Range: bytes=0-4"),
                .get(.hit, "Range: bytes=0-4", .status(206)))
            Case(
                "a public part for Authorization is stored", by: "parts",
                .script(
                    Reply(
                        status: 206, fields: ["Cache-Control: public, max-age=99", tag, "Content-Range: bytes 0-4/26"],
                        body: "abcde")), .get(.fetched, "Range: bytes=0-4", "Authorization: x"),
                .get(.hit, "Range: bytes=0-4", .status(206)))
            Case(
                "If-Range with the part's tag", by: "parts", part("0-9/26", "abcdefghij"),
                .get(.fetched, "Range: bytes=0-9"),
                .get(.hit, "Range: bytes=2-4", "If-Range: \"a\"", .status(206), .body("cde")))
            Case(
                "If-Range with another tag than the part's gets the full response", by: "parts",
                part("0-9/26", "abcdefghij"),
                .get(.fetched, "Range: bytes=0-9"), part("10-25/26", "klmnopqrstuvwxyz"),
                .get(
                    .fetched, "Range: bytes=2-4", "If-Range: \"b\"", .status(200), .body(letters),
                    .asked("Range", "bytes=10-")))
            Case(
                "several ranges inside a stored part", by: "parts",
                .script(
                    Reply(
                        status: 206, fields: [fresh, tag, "Content-Range: bytes 0-519/520"],
                        body: String(repeating: letters, count: 20))), .get(.fetched, "Range: bytes=0-519"),
                .get(.hit, "Range: bytes=0-1,500-501", .status(206), .contains("Content-Type", "multipart/byteranges")))
            Case(
                "a part has its age", by: "parts",
                .script(
                    Reply(
                        status: 206,
                        fields: ["Cache-Control: max-age=100", "Age: 50", tag, "Content-Range: bytes 0-4/26"],
                        body: "abcde")), .get(.fetched, "Range: bytes=0-4"),
                .get(.hit, "Range: bytes=0-4", .age(50...55), .status(206)))
            Case(
                "the newer part's fields apply to all parts", by: "parts", part("0-4/26", "abcde", tag, "X: old"),
                .get(.fetched, "Range: bytes=0-4"), part("5-9/26", "fghij", tag, "X: new"),
                .get(.fetched, "Range: bytes=5-9"), .get(.hit, "Range: bytes=0-4", .has("X", "new"), .status(206)))
            Case(
                "parts of two variants do not combine", by: "parts", part("0-4/26", "abcde", tag, "Vary: X"),
                .get(.fetched, "Range: bytes=0-4", "X: 1"), part("0-4/26", "ABCDE", tag, "Vary: X"),
                .get(.fetched, "Range: bytes=0-4", "X: 2", .body("ABCDE")),
                .get(.hit, "Range: bytes=0-4", "X: 1", .body("abcde"), .status(206)),
                .get(.hit, "Range: bytes=0-4", "X: 2", .body("ABCDE"), .status(206)))
            Case(
                "an unsafe request drops the parts", by: "parts", part("0-4/26", "abcde"),
                .get(.fetched, "Range: bytes=0-4"), .send("POST", .stale, .status(206)),
                .get(.fetched, "Range: bytes=0-4", .askedWithout("If-None-Match")))
            Case(
                "only-if-cached is served from a part", by: "parts", part("0-4/26", "abcde"),
                .get(.fetched, "Range: bytes=0-4"),
                .get(.hit, "Range: bytes=1-2", "Cache-Control: only-if-cached", .body("bc"), .status(206)),
                .get(.refused, "Range: bytes=4-5", "Cache-Control: only-if-cached", .status(504)))
            Case(
                "a HEAD is not answered from a part", by: "parts", part("0-4/26", "abcde"),
                .get(.fetched, "Range: bytes=0-4"), .answers(fresh, tag, body: letters), .head(.stale, .status(200)),
                .get(.hit, "Range: bytes=0-4", .status(206)))
            Case(
                "a stale part that has changed is replaced", by: "parts",
                .script(
                    Reply(
                        status: 206,
                        fields: ["Cache-Control: max-age=10", "Age: 20", tag, "Content-Range: bytes 0-4/26"],
                        body: "abcde")), .get(.fetched, "Range: bytes=0-4"), part("0-4/9", "ABCDE", "ETag: \"b\""),
                .get(
                    .validated, "Range: bytes=0-4", .status(206), .body("ABCDE"), .has("Content-Range", "bytes 0-4/9")),
                .get(.hit, "Range: bytes=0-4", .body("ABCDE"), .status(206)))
        }

        @CaseTable static var framing: [Case] {
            Case(
                "trailers go to a client that takes them",
                .does(
                    .head(200, fresh, "Transfer-Encoding: chunked", "Trailer: X-T"), .chunk("one"), .lastChunk("X-T: 1")
                ), .get(.fetched, "TE: trailers", "Connection: TE", .body("one"), .trailers(["X-T: 1"])))
            Case(
                "trailers do not go to a client that does not",
                .does(
                    .head(200, fresh, "Transfer-Encoding: chunked", "Trailer: X-T"), .chunk("one"), .lastChunk("X-T: 1")
                ), .get(.fetched, .body("one"), .trailers([])))
            Case(
                "a hit sends trailers to a client that takes them",
                .does(.head(200, fresh, "Transfer-Encoding: chunked"), .chunk("one"), .lastChunk("X-T: 1")),
                .get(.fetched, .body("one")),
                .get(.hit, "TE: trailers", "Connection: TE", .body("one"), .trailers(["X-T: 1"])),
                .get(.hit, .body("one"), .has("Content-Length", "3")))
            Case(
                "content codings are forwarded unchanged",
                .answers(fresh, "Content-Encoding: x-odd", body: "\u{1F}\u{8B}"),
                .get(.fetched), .get(.hit, .has("Content-Encoding", "x-odd"), .body("\u{1F}\u{8B}")))
            Case(
                "no-transform is forwarded unchanged", .answers("Cache-Control: max-age=100, no-transform"),
                .get(.fetched),
                .get(.hit, .has("Cache-Control", "max-age=100, no-transform")))
            Case(
                "an old client gets a stored response with a length",
                .does(.head(200, fresh, "Transfer-Encoding: chunked"), .chunk("one"), .lastChunk()),
                .get(.fetched, .oldClient, .body("one"), .lacks("Transfer-Encoding")),
                .get(.hit, .oldClient, .body("one"), .has("Content-Length", "3")))
        }
    }
}
