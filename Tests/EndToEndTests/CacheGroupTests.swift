import Testing

/// RFC 9875: what is on its way while its group is invalidated.
@Suite(.scenario) struct CacheGroupTests {
    private let fresh = ["Cache-Control: max-age=60", "ETag: \"a\"", "Cache-Groups: \"g\""]

    private func invalidate(_ proxy: Program) throws {
        let answer = try proxy.send("POST", "/post", body: "")
        #expect(answer.status == 200)
    }

    private func invalidating(_ request: Received) -> [Step] { [.answer(200, "Cache-Group-Invalidation: \"g\"")] }

    @Test func `a page that was asked for before its group was invalidated is not used again as it is`() throws {
        try scenario { [fresh] origin, proxy in
            let gate = Gate()
            origin.on("/post", invalidating)
            origin.on("/g") { request in
                [.gate(request.number == 1 ? gate : .opened), .head(200, fresh + ["Content-Length: 1"]), .text("\(request.number)")]
            }
            let before = proxy.crowd(1, get: "/g")
            try eventually("it is asked for") { origin.count("/g") == 1 }
            try invalidate(proxy)
            gate.open()
            #expect(before.finished().first?.text == "1")
            #expect(try proxy.get("/g").text == "2")
            #expect(try proxy.get("/g").text == "2")
        }
    }

    @Test func `nor is one that was confirmed to a request from before`() throws {
        try scenario { [fresh] origin, proxy in
            let gate = Gate()
            origin.on("/post", invalidating)
            origin.on("/g") { request in
                switch request.number {
                case 1: [.head(200, fresh + ["Age: 80", "Content-Length: 1"]), .text("1")]
                case 2: [.gate(gate), .head(304, fresh)]
                default: [.head(200, fresh + ["Content-Length: 1"]), .text("\(request.number)")]
                }
            }
            try proxy.get("/g")
            let before = proxy.crowd(1, get: "/g")
            try eventually("it is asked for") { origin.count("/g") == 2 }
            try invalidate(proxy)
            gate.open()
            #expect(before.finished().first?.text == "1")
            #expect(try proxy.get("/g").text == "3")
        }
    }

    @Test(arguments: [true, false])
    func `nobody joins a fetch from before whose head is there`(_ headIsFirst: Bool) throws {
        try scenario { [fresh] origin, proxy in
            let head = Gate(), body = Gate()
            origin.on("/post", invalidating)
            origin.on("/g") { request in
                request.number == 1
                    ? [.gate(head), .head(200, fresh + ["Content-Length: 2"]), .text("1"), .gate(body), .text("1")]
                    : [.head(200, fresh + ["Content-Length: 1"]), .text("2")]
            }
            let before = proxy.crowd(1, get: "/g")
            try eventually("it is asked for") { origin.count("/g") == 1 }
            if !headIsFirst { try invalidate(proxy) }
            head.open()
            try eventually("its head is there") { before.answers[0].status == 200 }
            if headIsFirst { try invalidate(proxy) }
            #expect(try proxy.get("/g").text == "2")
            body.open()
            #expect(before.finished().first?.text == "11")
        }
    }

    @Test func `what was asked for afterwards is used again`() throws {
        try scenario { [fresh] origin, proxy in
            origin.on("/post", invalidating)
            origin.on("/g") { request in [.head(200, fresh + ["Content-Length: 1"]), .text("\(request.number)")] }
            try invalidate(proxy)
            for _ in 1...2 { #expect(try proxy.get("/g").text == "1") }
        }
    }
}
