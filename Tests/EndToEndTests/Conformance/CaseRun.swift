/// One case being performed. Everything that is not as promised is collected and told with the whole conversation.
struct CaseRun {
    /// A case takes a few seconds at the most; with all of them at once on a busy machine, a few more.
    private static let patience = Duration.seconds(12)

    private let stage: Stage
    private let path: String
    private var reply = Reply()
    /// Before the reply: `Reply.waitsForAll`.
    private var allAreIn: Gate?
    /// Begun and not ended.
    private var begun: Conversation?
    private var replies = 0
    /// The content that the store should have by now.
    private var storedBody = ""
    private var transcript: [String] = []
    private var problems: [String] = []
    private let began = System.secondsNow

    struct Mismatch: Error, CustomStringConvertible {
        let description: String
    }

    private init(_ stage: Stage, route: String) {
        self.stage = stage
        path = stage.board.newPath(route)
    }

    static func perform(_ one: Case, on stage: Stage) throws {
        var run = CaseRun(stage, route: one.route)
        do {
            for move in one.moves { try run.perform(move) }
        } catch {
            run.problems.append("\(error)")
        }
        guard !run.problems.isEmpty else { return }
        let lines = [one.promise] + run.problems.map { "  ✗ \($0)" } + run.transcript.map { "    \($0)" }
        throw Mismatch(description: lines.joined(separator: "\n"))
    }

    private mutating func perform(_ move: Move) throws {
        switch move {
        case .script(let reply): set(reply)
        case .pause(let time):
            transcript.append("… \(time.rounded)")
            System.nap(time)
        case .originAsked(let count):
            let (board, path) = (stage.board, path)
            try eventually("the origin is asked \(count) times; it was \(board.asked(path).count)", within: .seconds(5))
            {
                board.asked(path).count >= count
            }
        case .fetchesEnd:
            if stage.isOurs { try stage.waitForFetches(of: path) } else { System.nap(.seconds(1)) }
        case .ask(let method, let clients, let outcome, let details):
            try ask(method, clients, outcome, details)
        case .begin(let details):
            let (board, path, before) = (stage.board, path, stage.board.asked(path).count)
            let request = request("GET", details)
            transcript.append("GET \(request.target) \(request.fields) begins")
            let conversation = try stage.proxy.connect()
            try conversation.send(request.text)
            try eventually("the origin is asked", within: .seconds(5)) { board.asked(path).count > before }
            begun = conversation
        case .end(let details):
            guard let answer = try begun?.answer(within: Self.patience) else { break }
            transcript.append(
                "  what was begun ended: \(answer.head.map(Self.shown) ?? "nothing") \"\(answer.text)\" \(answer.ending)"
            )
            for detail in details {
                switch detail {
                case .status(let status): expect(answer.status == status, "status \(status), not \(answer.status)")
                case .body(let text):
                    expect(answer.text == filled(text), "the content is \"\(filled(text))\", not \"\(answer.text)\"")
                default: check(answer, detail)
                }
            }
        }
    }

    // MARK: - The origin

    private mutating func set(_ new: Reply) {
        replies += 1
        reply = new
        reply.body = filled(new.body ?? "answer \(replies)")
        reply.fields = new.fields.map(filled)
        if reply.waitsForAll {
            allAreIn = stage.isOurs ? Gate() : nil
            reply.before.insert(allAreIn.map { .gate($0) } ?? .wait(.milliseconds(300)), at: 0)
        }
        stage.board.set(steps(reply), for: path)
        let shown = reply.steps.map { "\($0.count) steps" } ?? "\(reply.status) \(reply.fields) \"\(reply.body ?? "")\""
        transcript.append("origin: \(shown)")
    }

    private func steps(_ reply: Reply) -> [Step] {
        if let steps = reply.steps { return steps }
        let body = reply.body ?? ""
        let hasContent = reply.status != 204 && reply.status != 304
        let isSized = reply.fields.contains {
            $0.lowercased().hasPrefix("content-length:") || $0.lowercased().hasPrefix("transfer-encoding:")
        }
        let length = hasContent && !isSized ? ["Content-Length: \(body.utf8.count)"] : []
        return reply.before + [
            .head(reply.status, reply.fields + length), .payload(hasContent ? Array(body.utf8) : []),
        ]
    }

    // MARK: - The clients

    private func request(_ method: String, _ details: [Detail]) -> (text: String, target: String, fields: [String]) {
        var target = path
        var fields: [String] = []
        var content: String?
        var version = "HTTP/1.1"
        for detail in details {
            switch detail {
            case .with(let field): fields.append(filled(field))
            case .at(let suffix): target = path + suffix
            case .target(let other): target = filled(other)
            case .content(let text): content = text
            case .oldClient: version = "HTTP/1.0"
            default: break
            }
        }
        let text = stage.proxy.request(method, target, fields, body: content)
            .replacing("\(target) HTTP/1.1", with: "\(target) \(version)", maxReplacements: 1)
        return (text, target, fields)
    }

    private mutating func ask(_ method: String, _ clients: Int, _ outcome: Outcome, _ details: [Detail]) throws {
        let (text, target, fields) = request(method, details)
        transcript.append("\(clients) × \(method) \(target) \(fields) → \(outcome)?")

        let before = stage.board.asked(path).count
        let answers = try answers(to: text, method, clients)
        let asked = stage.board.asked(path).dropFirst(before)
        for request in asked { transcript.append("  origin got: \(Self.shown(request.head))") }
        for answer in answers {
            let head = answer.head.map(Self.shown) ?? "nothing"
            transcript.append("  client got: \(head) \"\(answer.text)\" \(answer.ending)")
            check(answer, method, outcome, Array(asked), fields, details)
        }
        checkAsked(Array(asked), clients, outcome, fields, details)
        for case .number(let count, let name, let part) in details {
            let got = answers.count { $0[name]?.contains(part) ?? false }
            expect(got == count, "\(count) have \(name) with \(part), not \(got)")
        }
        if begun == nil, outcome == .fetched || outcome == .validated || outcome == .fetchedEach {
            try stage.waitForFetches(of: path)
        }
        if method == "GET" || method == "POST", outcome == .fetched || outcome == .validated, reply.status != 304,
            let answer = answers.first
        {
            storedBody = answer.text
        }
    }

    /// `…` at the end of what is promised stands for anything: a number of seconds, which depends on how busy the
    /// machine is.
    private static func isAsPromised(_ value: String, _ promised: String) -> Bool {
        promised.hasSuffix("…") ? value.hasPrefix(String(promised.dropLast())) : value == promised
    }

    private func answers(to text: String, _ method: String, _ clients: Int) throws -> [Answer] {
        let endpoint = Self.isSayableInHTTP2(text) ? stage.proxy.endpoint : stage.proxy.endpoint.withoutFraming
        if clients == 1 {
            let conversation = try Conversation(with: endpoint)
            try conversation.send(text)
            try letReply(to: clients)
            return [try conversation.answer(to: method, within: Self.patience)]
        }
        let visitor = Visitor(request: Array(text.utf8), method: method)
        let crowd = Crowd(at: endpoint, Array(repeating: visitor, count: clients))
        try letReply(to: clients)
        return crowd.finished(within: Self.patience)
    }

    /// Whether HTTP/2 has a request such as this: it has no versions below, no CONNECT as it is meant here, and no
    /// absolute targets.
    private static func isSayableInHTTP2(_ request: String) -> Bool {
        let words = request.prefix { $0 != "\r\n" }.split(separator: " ")
        return words.count == 3 && words[2] == "HTTP/1.1" && words[0] != "CONNECT" && !words[1].contains("://")
    }

    /// The first time after the reply was scripted; what is fetched later is not held up.
    private func letReply(to clients: Int) throws {
        guard let allAreIn, !allAreIn.isOpen else { return }
        try stage.waitForClients(clients, of: path)
        allAreIn.open()
    }

    // MARK: - Was it as promised?

    private mutating func expect(_ holds: Bool, _ promise: String) {
        if !holds { problems.append(promise) }
    }

    private mutating func checkAsked(
        _ asked: [Received], _ clients: Int, _ outcome: Outcome, _ fields: [String], _ details: [Detail]
    ) {
        func asks(_ name: String) -> Bool { fields.contains { $0.lowercased().hasPrefix(name + ":") } }
        let isConditional =
            asked.last.map { request in
                ["if-none-match", "if-modified-since"].contains { request[$0] != nil && !asks($0) }
            } ?? false
        switch outcome {
        case .fetched:
            expect(asked.count == 1, "the origin is asked once, not \(asked.count) times")
            expect(!isConditional, "the proxy adds no condition")
        case .validated:
            expect(asked.count == 1, "the origin is asked once, not \(asked.count) times")
            expect(
                asked.last.map { $0["if-none-match"] != nil || $0["if-modified-since"] != nil } ?? false,
                "the origin is asked with a condition")
        case .hit, .refused:
            expect(asked.isEmpty, "the origin is not asked, but was \(asked.count) times")
        case .fetchedEach:
            expect(asked.count == clients, "the origin is asked \(clients) times, not \(asked.count)")
        case .stale, .failed: break
        }
        for detail in details {
            switch detail {
            case .asked(let name, let value):
                let value = filled(value)
                expect(
                    asked.last?[name] == value, "the origin gets \(name): \(value), not \(asked.last?[name] ?? "none")")
            case .askedContaining(let name, let value):
                let value = filled(value)
                expect(
                    asked.last?[name]?.contains(value) ?? false,
                    "the origin gets \(name) with \(value), not \(asked.last?[name] ?? "none")")
            case .askedWithout(let name):
                expect(
                    asked.last.map { $0[name] == nil } ?? false,
                    "the origin gets no \(name), but \(asked.last?[name] ?? "no request")")
            case .askedFor(let suffix):
                expect(
                    asked.last?.target == path + suffix,
                    "the origin is asked for …\(suffix), not \(asked.last?.target ?? "nothing")")
            default: break
            }
        }
    }

    private mutating func check(
        _ answer: Answer, _ method: String, _ outcome: Outcome, _ asked: [Received], _ fields: [String],
        _ details: [Detail]
    ) {
        var status =
            outcome == .fetched || outcome == .fetchedEach || (outcome == .validated && reply.status != 304)
            ? reply.status : 200
        var body: String?
        switch outcome {
        case .fetched, .fetchedEach:
            body = reply.steps == nil && reply.status != 304 && reply.status != 204 ? reply.body : nil
        case .validated: body = reply.status == 304 ? storedBody : reply.steps == nil ? reply.body : nil
        case .hit, .stale: body = storedBody
        case .refused, .failed: body = nil
        }
        var isCutOff = false
        for detail in details {
            switch detail {
            case .status(let number):
                if number != status { body = nil }
                status = number
            case .body(let text): body = text
            case .cutOff: (isCutOff, body) = (true, nil)
            default: break
            }
        }
        expect(
            answer.status == status || reply.steps != nil && outcome == .fetched,
            "status \(status), not \(answer.status)")
        expect(answer.isClean != isCutOff, "the answer ends \(isCutOff ? "cut off" : "cleanly"), not \(answer.ending)")
        if method == "HEAD" { body = "" }
        if let body {
            expect(answer.text == filled(body), "the content is \"\(filled(body))\", not \"\(answer.text)\"")
        }
        checkCacheStatus(answer, outcome, fields)
        for detail in details { check(answer, detail) }
    }

    /// RFC 9211: what the proxy says of itself is what both ends saw.
    private mutating func checkCacheStatus(_ answer: Answer, _ outcome: Outcome, _ fields: [String]) {
        guard stage.isOurs else { return }
        let told = answer.head?.all("cache-status").last ?? ""
        switch outcome {
        case .hit:
            expect(told.hasPrefix("coalesced; hit"), "Cache-Status says hit: \(told)")
            expect(answer["age"] != nil, "Age is there")
        case .fetched, .validated, .fetchedEach:
            expect(told.contains("fwd=") && !told.contains("; hit"), "Cache-Status says that it was forwarded: \(told)")
        case .stale, .refused, .failed: break
        }
    }

    private mutating func check(_ answer: Answer, _ detail: Detail) {
        switch detail {
        case .has(let name, let value):
            let value = filled(value)
            expect(
                answer[name].map { Self.isAsPromised($0, value) } ?? false,
                "\(name): \(value), not \(answer[name] ?? "none")")
        case .lacks(let name): expect(answer[name] == nil, "no \(name), but \(answer[name] ?? "")")
        case .lines(let name, let values):
            let (got, values) = (answer.head?.all(name) ?? [], values.map(filled))
            expect(
                got.count == values.count && zip(got, values).allSatisfy(Self.isAsPromised),
                "\(name): \(values), not \(got)")
        case .contains(let name, let part):
            let part = filled(part)
            expect(answer[name]?.contains(part) ?? false, "\(name) with \(part), not \(answer[name] ?? "none")")
        case .age(let range):
            expect(
                answer["age"].flatMap { Int($0) }.map(range.contains) ?? false,
                "Age in \(range), not \(answer["age"] ?? "none")")
        case .interims(let statuses):
            let got = answer.interim.map(\.status)
            expect(got == statuses, "interim responses \(statuses), not \(got)")
        case .trailers(let lines):
            expect(answer.body.trailers == lines, "trailers \(lines), not \(answer.body.trailers)")
        case .with, .at, .target, .content, .number, .oldClient, .status, .body, .cutOff, .asked, .askedContaining,
            .askedWithout, .askedFor:
            break
        }
    }

    // MARK: -

    /// With `@`, `{scheme}` and so on, and `{seconds}` filled in.
    private func filled(_ text: String) -> String {
        let isSecure = stage.proxy.scheme == "https"
        let isFramed = stage.proxy.endpoint != stage.proxy.endpoint.withoutFraming
        var result = text.replacing("@", with: path).replacing("{host}", with: stage.proxy.host)
            .replacing("{scheme}", with: stage.proxy.scheme).replacing("{other}", with: isSecure ? "http" : "https")
            .replacing("{port}", with: isSecure ? "443" : "80")
            .replacing("{version}", with: isFramed ? "2.0" : "1.1")
        while let open = result.firstIndex(of: "{"), let close = result[open...].firstIndex(of: "}"),
            let offset = Int(result[result.index(after: open)..<close].drop { $0 == "+" })
        {
            result.replaceSubrange(open...close, with: System.httpDate(offset + began - System.secondsNow))
        }
        return result
    }

    private static func shown(_ head: Head) -> String {
        head.text.split(whereSeparator: { $0 == "\r\n" }).joined(separator: " | ")
    }
}
