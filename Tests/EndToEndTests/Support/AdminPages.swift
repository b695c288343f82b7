/// The program seen through its admin listener.
extension Program {
    /// The sum of all samples of a metric: the name, with the labels that are asked for.
    func metric(_ metric: Metric) throws -> Int {
        try Int(Self.sum(metric.rawValue, in: admin.get("/metrics").wholeText))
    }

    /// Adds up the samples whose name is that of `wanted` and whose labels contain those of `wanted`.
    static func sum(_ wanted: String, in page: String) -> Double {
        func parts(_ text: Substring) -> (name: Substring, labels: [Substring]) {
            let pieces = text.split(separator: "{", maxSplits: 1)
            let labels = pieces.count > 1 ? pieces[1].dropLast().split(separator: ",") : []
            return (pieces.first ?? "", labels)
        }
        let (name, labels) = parts(wanted[...])
        return page.split(separator: "\n").reduce(0) { sum, line in
            guard !line.hasPrefix("#"), let space = line.lastIndex(of: " ") else { return sum }
            let sample = parts(line[..<space])
            guard sample.name == name, labels.allSatisfy(sample.labels.contains) else { return sum }
            return sum + (Double(line[line.index(after: space)...]) ?? 0)
        }
    }

    /// Waits until so many requests have begun or joined a fetch: all of a crowd are in.
    func joined(_ count: Int, within limit: Duration = .seconds(10)) throws {
        try eventually("\(count) requests have begun or joined a fetch", within: limit) {
            try metric(.led) + metric(.alone) + metric(.joined) + metric(.joinedLate) >= count
        }
    }

    /// As that of any peer; but what is announced as stored is stored when it returns. A client may have its last byte,
    /// or a 304 of the program's own, a moment before that. Where the test holds another fetch of the target, `send` does
    /// not wait for it.
    @discardableResult
    func get(_ target: String, _ fields: String...) throws -> Answer {
        let conversation = try connect()
        try conversation.send(request("GET", target, fields))
        let answer = try conversation.answer()
        if answer.cacheStatus.contains("; stored") { try fetchesEnd(of: target) }
        return answer
    }

    /// Waits until what was fetched of the target's path is stored, with whatever query.
    func fetchesEnd(of target: String, within limit: Duration = .seconds(10)) throws {
        func path(_ target: Substring) -> Substring { target.prefix { $0 != "?" && $0 != "\0" } }
        try eventually("the fetches of \(target) end", within: limit) {
            guard case .array(let fetches) = try status()["fetches"] else { return false }
            return !fetches.contains { fetch in
                fetch["key"]?.string.map {
                    path($0.split(separator: " ", maxSplits: 2).last ?? "") == path(target[...])
                } ?? true
            }
        }
    }

    func status() throws -> JSON {
        try JSON(admin.get("/status").wholeText)
    }

    /// The servers of the first upstream, as `/status` has them.
    func servers() throws -> [JSON] { try status()["upstreams"]?.elements.first?["servers"]?.elements ?? [] }

    /// Their states.
    func serverStates() throws -> [String?] { try servers().map { $0["state"]?.string } }

    @discardableResult
    func purge(_ url: String) throws -> Answer { try admin.send("POST", "/purge", body: url) }
    func purgeAll() throws -> Answer { try admin.send("POST", "/purge", body: "all") }

    /// Runs another `coalesced`, told of this one's admin listener.
    func command(_ words: String...) throws -> Run { try command(words) }

    func command(_ words: [String]) throws -> Run {
        let program = try Program(
            folder: System.makeTemporaryFolder(), words + ["--admin", "unix:\(folder)/admin.sock"])
        defer { program.stop() }
        return try Run(exit: program.exited(), output: program.output, errors: program.diagnostics)
    }
}

extension Answer {
    /// The body, which must not be longer than what is kept.
    var wholeText: String {
        get throws {
            guard body.kept.count == body.length else {
                throw Late(what: "a body of \(body.length) bytes is not kept", place: "Answer")
            }
            return text
        }
    }
}
