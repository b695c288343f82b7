import Testing

/// RFC 9875: what is on its way while its group is invalidated.
@Suite(.scenario) struct CacheGroupTests {
    private let fresh = ["Cache-Control: max-age=60", "ETag: \"a\"", "Cache-Groups: \"g\""]

    private func invalidate(_ proxy: Program) throws {
        let answer = try proxy.send("POST", "/post", body: "")
        #expect(answer.status == 200)
    }

    private func invalidating(_ request: Received) -> [Step] { [.answer(200, "Cache-Group-Invalidation: \"g\"")] }

    @Test func `a page requested before its group was invalidated is not reused`() throws {
        try scenario { [fresh] origin, proxy in
            let gate = Gate()
            origin.on("/post", invalidating)
            origin.on("/g") { request in
                [
                    .gate(request.number == 1 ? gate : .opened), .head(200, fresh + ["Content-Length: 1"]),
                    .text("\(request.number)"),
                ]
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

    @Test func `a HEAD that confirms nothing does not make a page from before the invalidation reusable`() throws {
        try scenario { [invalidating] origin, proxy in
            origin.on("/post", invalidating)
            origin.on("/g") { request in
                [.answer(200, "Cache-Control: max-age=60", "Cache-Groups: \"g\"", body: "\(request.number)")]
            }
            try proxy.get("/g")
            try invalidate(proxy)
            try proxy.send("HEAD", "/g")
            #expect(try proxy.get("/g").text == "3")
        }
    }

    @Test func `a page confirmed to a request from before the invalidation is not reused`() throws {
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
    func `a fetch from before the invalidation is not joined once its head has arrived`(_ headIsFirst: Bool) throws {
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
            #expect(try proxy.send("GET", "/g").text == "2")
            body.open()
            #expect(before.finished().first?.text == "11")
        }
    }

    @Test(arguments: ["a whole", "a whole, confirmed", "a part", "HEAD", "a whole, twice"])
    func `a request after the invalidation gets no response that was requested before`(what: String) throws {
        let isPart = what == "a part", method = what == "HEAD" ? "HEAD" : "GET"
        try scenario(.rangeMisses(isPart ? "part" : "whole")) { [fresh] origin, proxy in
            let gate = Gate()
            let isConfirmed = what.hasSuffix("confirmed")
            let first = isConfirmed ? 2 : 1
            origin.on("/post", invalidating)
            origin.on("/g") { request in
                let number = "X-Number: \(request.number)"
                let steps: [Step] =
                    if isConfirmed, request.number == 1 {
                        [.head(200, fresh + ["Age: 80", "Content-Length: 2"]), .text("ab")]
                    } else if isConfirmed, request.number == first {
                        [.head(304, fresh + [number])]
                    } else if isPart {
                        [.head(206, fresh + ["Content-Range: bytes 0-0/2", "Content-Length: 1", number]), .text("a")]
                    } else {
                        [.head(200, fresh + ["Content-Length: 2", number]), .text("ab")]
                    }
                return [.gate(request.number == first ? gate : .opened)] + steps
            }
            if isConfirmed { try proxy.get("/g") }
            var asked = isConfirmed ? 1 : 0
            func ask(_ count: Int) throws -> [Conversation] {
                try (0..<count).map { _ in
                    let client = try proxy.connect()
                    try client.send(proxy.request(method, "/g", isPart ? ["Range: bytes=0-0"] : []))
                    asked += 1
                    try proxy.joined(asked)
                    return client
                }
            }
            func numbers(_ clients: [Conversation]) throws -> [String] {
                try clients.map { try $0.answer(to: method).head?["x-number"] ?? "" }
            }
            let before = try ask(2)
            try eventually("it is asked for") { origin.count("/g") == first }
            try invalidate(proxy)
            // The POST leads too.
            asked += 1
            let after = try ask(4)
            if what.hasSuffix("twice") { try invalidate(proxy) }
            gate.open()
            let (old, new) = try (numbers(before), numbers(after))
            #expect(old.first == "\(first)")
            // Of those who waited then nobody knows, where there were two, whether they came before the first.
            if !what.hasSuffix("twice") { #expect(old == ["\(first)", "\(first)"]) }
            // What HEAD brings is not stored: who looks again when the next fetch is over already makes another.
            let isShared = method == "GET"
            #expect(new.allSatisfy { isShared ? $0 == "\(first + 1)" : Int($0) ?? 0 > first }, "\(new)")
            if isShared { #expect(origin.count("/g") == first + 1) }
        }
    }

    @Test(arguments: [true, false])
    func `parts of an invalidated group are fresh once confirmed, and dropped otherwise`(
        areConfirmed: Bool
    ) throws {
        try scenario(.rangeMisses("part")) { [fresh] origin, proxy in
            origin.on("/post", invalidating)
            origin.on("/g") { request in
                guard request.number == 2 else {
                    return [.head(206, fresh + ["Content-Range: bytes 0-1/9", "Content-Length: 2"]), .text("ab")]
                }
                return areConfirmed ? [.head(304, fresh)] : [.answer(416, "Content-Range: bytes */1")]
            }
            #expect(try proxy.get("/g", "Range: bytes=0-1").text == "ab")
            try invalidate(proxy)
            #expect(try proxy.get("/g", "Range: bytes=0-1").text == "ab")
            #expect(origin.requests("/g")[1]["if-none-match"] == "\"a\"")
            #expect(try proxy.get("/g", "Range: bytes=0-1").text == "ab")
            let asked = origin.requests("/g").map { $0["if-none-match"] ?? "" }
            #expect(
                areConfirmed ? asked.count == 2 : asked.count > 2 && asked[2...].allSatisfy { $0.isEmpty }, "\(asked)")
        }
    }

    @Test func `a page requested after the invalidation is reused`() throws {
        try scenario { [fresh] origin, proxy in
            origin.on("/post", invalidating)
            origin.on("/g") { request in [.head(200, fresh + ["Content-Length: 1"]), .text("\(request.number)")] }
            try invalidate(proxy)
            for _ in 1...2 { #expect(try proxy.get("/g").text == "1") }
        }
    }
}
