import Testing

/// Those of one loop who wait for the same share a seat at its fetch: each of them is still one by itself.
@Suite(.scenario) struct SharedWaitTests {
    @Test func `each waiter gets an interim response once, whenever it joined`() throws {
        try scenario(.workers(1)) { origin, proxy in
            let (interim, head) = (Gate(), Gate())
            origin.on("/x") { _ in
                [
                    .gate(interim), .interim(103, "Link: </a.css>; rel=preload"), .gate(head),
                    .answer(200, "Cache-Control: max-age=60", body: "x"),
                ]
            }
            let leader = try proxy.connect()
            try leader.send(proxy.request("GET", "/x"))
            try eventually("it leads") { origin.count("/x") == 1 }
            let before = proxy.crowd(5, get: "/x")
            try proxy.joined(6)
            interim.open()
            _ = try leader.progress { !$0.interim.isEmpty }
            let after = proxy.crowd(5, get: "/x")
            try proxy.joined(11)
            head.open()
            #expect(try leader.answer().text == "x")
            #expect(
                (before.finished() + after.finished()).allSatisfy {
                    $0.interim.map(\.status) == [103] && $0.text == "x"
                })
            #expect(origin.count("/x") == 1)
        }
    }

    @Test func `each waiter waits as long as the operator says, and no longer`() throws {
        try scenario(.workers(1), .waitTimeout(.milliseconds(500)), .whenExceeded("503"), .overtakeAfter(.seconds(20)))
        { origin, proxy in
            origin.on("/mute") { _ in [.silence] }
            let leader = proxy.crowd(1, get: "/mute")
            try eventually("it leads") { origin.count("/mute") == 1 }
            let crowds = try (1...5).map { round in
                let crowd = proxy.crowd(20, get: "/mute")
                try proxy.joined(1 + 20 * round)
                return crowd
            }
            let answers = crowds.flatMap { $0.finished() }
            #expect(
                answers.allSatisfy {
                    $0.status == 503 && $0.isClean && $0.took > .milliseconds(450)
                        && $0.took < .milliseconds(500) + aStall
                })
            #expect(origin.count("/mute") == 1)
            leader.close()
        }
    }

    @Test func `each waiter gets its own variant`() throws {
        try scenario(.workers(1)) { origin, proxy in
            let head = Gate()
            origin.on("/x") { request in
                [
                    .gate(head),
                    .answer(
                        200, "Cache-Control: max-age=60", "Vary: Accept-Language",
                        body: request["accept-language"] ?? "none"),
                ]
            }
            let leader = proxy.crowd(1, get: "/x", "Accept-Language: en")
            try eventually("it leads") { origin.count("/x") == 1 }
            let english = proxy.crowd(10, get: "/x", "Accept-Language: en")
            try proxy.joined(11)
            let german = proxy.crowd(10, get: "/x", "Accept-Language: de")
            try proxy.joined(21)
            head.open()
            #expect((leader.finished() + english.finished()).allSatisfy { $0.text == "en" })
            #expect(german.finished().allSatisfy { $0.text == "de" })
            #expect(origin.count("/x") == 2)
        }
    }

    @Test func `a group whose waiters have all left does not block the next request`() throws {
        try scenario(.workers(1)) { origin, proxy in
            let head = Gate()
            origin.on("/x") { _ in [.gate(head), .answer(200, "Cache-Control: max-age=60", body: "x")] }
            let leader = proxy.crowd(1, get: "/x")
            try eventually("it leads") { origin.count("/x") == 1 }
            let gone = proxy.crowd(5, get: "/x")
            try proxy.joined(6)
            for index in 0..<5 { gone.leave(index) }
            try eventually("they have left") { try proxy.metric(.openClients) <= 2 }
            let rest = proxy.crowd(5, get: "/x")
            try proxy.joined(11)
            head.open()
            #expect((leader.finished() + rest.finished()).allSatisfy { $0.text == "x" })
            #expect(origin.count("/x") == 1)
        }
    }

    @Test func `each waiter gets the failure of the fetch`() throws {
        try scenario(.workers(1)) { origin, proxy in
            let head = Gate()
            origin.on("/x") { _ in [.gate(head), .close] }
            let leader = proxy.crowd(1, get: "/x")
            try eventually("it leads") { origin.count("/x") == 1 }
            let crowd = proxy.crowd(100, get: "/x")
            try proxy.joined(101)
            head.open()
            #expect((leader.finished() + crowd.finished()).allSatisfy { $0.status == 502 && $0.isClean })
        }
    }
}
