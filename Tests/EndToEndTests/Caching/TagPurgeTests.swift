import Testing

/// Purges by tag, and soft purges.
@Suite(.scenario) struct TagPurgeTests {
    private func script(_ origin: ScriptedOrigin, _ tags: String = "Cache-Tag: all, t", _ cacheControl: String = "") {
        origin.on("*") { request in
            [.answer(200, "Cache-Control: max-age=600\(cacheControl)", tags, body: "\(request.number)")]
        }
    }

    private static let fields = [
        "Cache-Tag: a, t", "Surrogate-Key: a t", "xkey: t", "X-Magento-Tags: a,t", "Cache-Groups: \"t\"",
    ]

    @Test(arguments: fields) func `a purge of a tag reaches what names it, and hits stay hits otherwise`(
        field: String
    ) throws {
        try scenario { origin, proxy in
            script(origin, field)
            for path in ["/a", "/b?c=d"] { try proxy.get(path) }
            let other = try proxy.purge("tag other")
            #expect(other.text.hasPrefix("purged 0 stored responses"), "\(other.text)")
            let hit = try proxy.get("/a")
            #expect(hit.text == "1" && hit.head?["cache-status"]?.contains("hit") == true)
            let purge = try proxy.purge("tag t")
            #expect(purge.text.hasPrefix("purged 2 stored responses"), "\(purge.text)")
            for path in ["/a", "/b?c=d"] { #expect(try proxy.get(path).text == "2") }
            #expect(try proxy.get("/a").text == "2")
        }
    }

    @Test(arguments: ["X-Other: a", "Surrogate-Key: b", "Cache-Groups: \"g\""])
    func `a response keeps its tags over a 304, although a rule removes their field`(_ field: String) throws {
        let removal = "{remove: [cache-tag, surrogate-key, cache-groups]}"
        try scenario(.other(section: "route", key: "response-headers", value: removal)) { origin, proxy in
            origin.on("/s") { request in
                request["if-none-match"] == nil
                    ? [.answer(200, "Cache-Control: max-age=1", "Age: 2", "ETag: \"a\"", "Cache-Tag: t", body: "body")]
                    : [.answer(304, "Cache-Control: max-age=600", "ETag: \"a\"", field)]
            }
            let first = try proxy.get("/s")
            #expect(first["cache-tag"] == nil && first.text == "body")
            try proxy.get("/s")
            try eventually("the 304 is stored") { try proxy.get("/s").cacheStatus.contains("hit") }
            let purge = try proxy.purge("tag t")
            #expect(purge.text.hasPrefix("purged 1 stored response"), "\(purge.text)")
            let fetched = origin.count("/s")
            try proxy.get("/s")
            #expect(origin.count("/s") == fetched + 1)
        }
    }

    @Test func `after a soft purge two hundred clients get the stale response at once, and one fetch runs`() throws {
        for what in ["tag t", "URL", "prefix", "all"] {
            try scenario { origin, proxy in
                let refresh = Gate()
                origin.on("/s") { request in
                    [
                        .gate(request.number == 1 ? .opened : refresh),
                        .answer(
                            200, "Cache-Control: max-age=600", "Cache-Tag: t", body: "version \(request.number)"),
                    ]
                }
                try proxy.get("/s")
                let url = "http://\(proxy.host)/"
                let line = what == "URL" ? "\(url)s" : what == "prefix" ? "prefix \(url)" : what
                let purge = try proxy.purge("soft\n\(line)")
                #expect(purge.text.hasPrefix("made 1 stored response stale"), "\(purge.text)")
                // The refresh stands at its gate meanwhile: nobody waits for it.
                let answers = proxy.crowd(200, get: "/s").finished()
                #expect(answers.allSatisfy { $0.text == "version 1" && $0.isClean })
                try eventually("the refresh runs") { origin.count("/s") == 2 }
                refresh.open()
                try eventually("the new version is served") { try proxy.get("/s").text == "version 2" }
                #expect(origin.count("/s") == 2)
            }
        }
    }

    @Test func `what must not be served stale waits for the origin after a soft purge, once for all`() throws {
        try scenario { origin, proxy in
            script(origin, "Cache-Tag: t", ", must-revalidate")
            try proxy.get("/a")
            try proxy.purge("soft\ntag t")
            #expect(proxy.crowd(20, get: "/a").finished().allSatisfy { $0.text == "2" })
            #expect(origin.count("/a") == 2)
        }
    }

    @Test func `the grace of a soft purge can be set`() throws {
        try scenario(.other(section: "purge", key: "soft-grace", value: "0s")) { origin, proxy in
            script(origin)
            try proxy.get("/a")
            try proxy.purge("soft\ntag t")
            #expect(try proxy.get("/a").text == "2")
        }
    }

    @Test func `a route says which fields name tags`() throws {
        try scenario(.other(section: "route", key: "tags", value: "[x-my-tags]")) { origin, proxy in
            script(origin, "Cache-Tag: t\r\nX-My-Tags: a b")
            try proxy.get("/a")
            try proxy.purge("tag t")
            #expect(try proxy.get("/a").text == "1")
            try proxy.purge("tag b")
            #expect(try proxy.get("/a").text == "2")
        }
    }

    @Test func `the purge command takes tags, and makes stale with --soft`() throws {
        try scenario { origin, proxy in
            script(origin)
            for path in ["/a", "/b"] { try proxy.get(path) }
            let soft = try proxy.command("purge", "--soft", "--tag", "t")
            #expect(
                soft.exit == .code(0) && soft.output.hasPrefix("made 2 stored responses stale"), "\(soft.everything)")
            #expect(try proxy.get("/a").text == "1")
            try eventually("it is refreshed") { try proxy.get("/a").text == "2" }
            let two = try proxy.command("purge", "--tag", "t", "all")
            #expect(two.output.hasPrefix("purged at most 4 stored responses"), "\(two.everything)")
            #expect(try proxy.get("/b").text == "2")
            let none = try proxy.command("purge", "--tag", "T")
            #expect(none.exit == .code(0) && none.errors.contains("with their case"), "\(none.everything)")
            for wrong in [
                ["--tag"], ["--tag", "--all"], ["--tag", "--prefix", "t"], ["--tag", ""], ["--tag", " t"],
            ] {
                let run = try proxy.command(["purge"] + wrong)
                #expect(run.exit == .code(64), "\(run.everything)")
            }
            let everything = try proxy.command("purge", "--soft", "--all")
            #expect(everything.output.hasPrefix("made 1 stored response stale"), "\(everything.everything)")
        }
    }

    /// The fetch has its plan from what is purged, and is sent after the purge: the origin would confirm the purged bytes.
    @Test(arguments: ["a whole", "parts"])
    func `a fetch that waits for its slot during a purge brings nothing back`(what: String) throws {
        try scenario(.maxConcurrentFetches(1), .rangeMisses(what == "parts" ? "part" : "whole")) { origin, proxy in
            let gate = Gate()
            let fields = ["Cache-Control: max-age=600", "Cache-Tag: t", "ETag: \"v\""]
            origin.on("/hold") { _ in [.gate(gate), .answer(200, "Cache-Control: no-store", body: "x")] }
            origin.on("/x") { request in
                let number = "\(request.number % 10)"
                if what == "a whole" {
                    return request["if-none-match"] == nil
                        ? [.head(200, fields + ["Content-Length: 1"]), .text(number)] : [.head(304, fields)]
                }
                let range = request["range"] == "bytes=0-1" ? "0-1" : "2-3"
                return [
                    .head(206, fields + ["Content-Range: bytes \(range)/9", "Content-Length: 2"]),
                    .text(number + number),
                ]
            }
            let (first, next) =
                what == "parts" ? ("Range: bytes=0-1", "Range: bytes=2-3") : ("A: b", "Cache-Control: no-cache")
            #expect(try proxy.get("/x", first).text == (what == "parts" ? "11" : "1"))
            let holding = proxy.crowd(1, get: "/hold")
            try eventually("it has the slot") { origin.count("/hold") == 1 }
            let client = try proxy.connect()
            try client.send(proxy.request("GET", "/x", [next]))
            try eventually("it waits for the slot") { try proxy.metric(.queued) == 1 }
            #expect(try proxy.purge("tag t").text.hasPrefix("purged 1 stored response"))
            gate.open()
            let text = try client.answer().text
            #expect(text == (what == "parts" ? "22" : "3"))
            #expect(holding.finished().first?.text == "x")
            let again = try proxy.get("/x", first).text
            #expect(again == (what == "parts" ? "33" : "3"))
        }
    }

    @Test func `a purge page's wrong lines purge nothing`() throws {
        try scenario { origin, proxy in
            script(origin)
            try proxy.get("/a")
            for wrong in [
                "tag ", "tag", "soft", "tag t\nsoft", "soft\nall\ntag t", "tag " + String(repeating: "x", count: 1025),
            ] {
                let answer = try proxy.purge(wrong)
                #expect(answer.status == 400 && answer.text.contains("tag NAME"), "\(wrong): \(answer.text)")
            }
            #expect(try proxy.get("/a").text == "1")
        }
    }

    @Test func `a purge by the origin's own groups reaches no other origin and no tags`() throws {
        try scenario { origin, proxy in
            origin.on("/post") { _ in [.answer(200, "Cache-Group-Invalidation: \"t\"")] }
            origin.on("/tag") { [.answer(200, "Cache-Control: max-age=600", "Cache-Tag: t", body: "\($0.number)")] }
            origin.on("/group") {
                [.answer(200, "Cache-Control: max-age=600", "Cache-Groups: \"t\"", body: "\($0.number)")]
            }
            for path in ["/tag", "/group"] { try proxy.get(path) }
            try proxy.get("/group", "Host: b.example")
            try proxy.send("POST", "/post", body: "")
            #expect(try proxy.get("/tag").text == "1")
            #expect(try proxy.get("/group").text == "3")
            #expect(try proxy.get("/group", "Host: b.example").text == "2")
        }
    }
}
