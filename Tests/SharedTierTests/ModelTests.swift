import Bytes
import Repeatable
import SharedTier
import Testing

/// Random schedules of three machines that look up, lead, follow and give up, while leases end, keys are evicted, entries
/// are lost and the engine falls back to an older state. The machines use the program's own commands and readers, on a
/// model of the engine; then the real engine gets the same commands, and must give the same answers. A thousand schedules
/// each time; 20,000 in each round of `.ci/long`.
@Suite struct ModelTests {
    /// How many schedules are sent at once.
    private static let batch = 100

    @Test func `no schedule makes a body with a gap, a mix of two fetches, or a record that is not whole`() throws {
        let engine = try Engine()
        let connection = try EngineConnection(engine.path)
        let seeds = Rounds.seeds(1000)
        var (hits, bodies, lost) = (0, 0, 0)
        var sent: [Schedule] = []
        for start in stride(from: seeds.lowerBound, to: seeds.upperBound, by: Self.batch) {
            var schedules: [Schedule] = []
            for seed in start..<min(start + UInt64(Self.batch), seeds.upperBound) {
                var schedule = Schedule(seed: seed)
                schedule.run()
                #expect(schedule.faults == [], "seed \(seed)")
                for (command, _) in schedule.log { connection.queue(command.map { ByteSlice($0) }) }
                hits += schedule.hits
                bodies += schedule.bodies
                lost += schedule.lost
                schedules.append(schedule)
            }
            connection.queue([ByteSlice("FLUSHALL")])
            // The engine had the schedules before these at the same time.
            guard compare(sent, try connection.receive()) else { return }
            try connection.transmit()
            sent = schedules
        }
        guard compare(sent, try connection.receive()) else { return }
        // The schedules try what they promise to try.
        #expect(hits > seeds.count / 4)
        #expect(bodies > seeds.count / 4)
        #expect(lost > seeds.count / 20)
    }

    /// Whether the engine gave the answers of the model.
    private func compare(_ schedules: [Schedule], _ replies: [TierValue]) -> Bool {
        var index = 0
        for schedule in schedules {
            for (command, expected) in schedule.log {
                let reply = replies[index].withoutTimes(command)
                index += 1
                guard reply != expected else { continue }
                Issue.record("seed \(schedule.seed): \(command) gave \(reply.shown), not \(expected.shown)")
                return false
            }
        }
        return true
    }
}

/// One schedule.
struct Schedule {
    /// One machine: at most one fetch at a time.
    private enum Machine {
        case idle
        case leading(TierLead, stored: String?)
        case following(TierReader, variant: Int, body: String)
    }

    private static let variants = [0, 1].map { TierKeys.variant(of: ByteSlice("client \($0)").span) }

    let seed: UInt64
    /// The commands with the model's answers.
    private(set) var log: [(command: [String], reply: TierValue)] = []
    /// What must not happen.
    private(set) var faults: [String] = []
    private(set) var (hits, bodies, lost) = (0, 0, 0)

    private var random: SeededGenerator
    private var model = EngineModel()
    private var machines = [Machine](repeating: .idle, count: 3)
    private var tokens: TierTokens
    private let keys: TierKeys
    /// The streams that there ever were, and the fetches that became a record or whose readers may see an end.
    private var (streams, finished): ([String], Set<String>) = ([], [])
    /// The streams of which entries were lost, by themselves or by a fail-over.
    private var damaged: Set<String> = []
    private var hasSnapshot = false
    /// What each machine believes of the resource's Vary: `""` or `"v"`.
    private var believed = ["", "", ""]

    init(seed: UInt64) {
        self.seed = seed
        random = SeededGenerator(seed: seed &* 7919 &+ 1)
        tokens = TierTokens(random: (seed, 1))
        keys = TierKeys(prefix: ByteSlice("m\(seed)"), primary: ByteSlice("http h /\(seed)").span)
    }

    mutating func run() {
        for _ in 0..<28 {
            let choice = Int.random(in: 0..<20, using: &random)
            if choice < 17 { step(Int.random(in: 0..<3, using: &random)) } else { fault() }
        }
    }

    private mutating func send(_ command: TierCommand) -> TierValue { send(command.words) }

    @discardableResult private mutating func send(_ command: [String]) -> TierValue {
        let reply = model.execute(command)
        log.append((command, reply))
        return reply
    }

    /// The variant of machine's client: two clients differ, if the response varies.
    private func variant(_ machine: Int) -> ByteSlice {
        believed[machine].isEmpty ? .empty : Self.variants[machine / 2]
    }

    // MARK: The machines

    private mutating func step(_ number: Int) {
        switch machines[number] {
        case .idle: look(number)
        case .leading(let lead, let stored): machines[number] = self.lead(number, lead, stored)
        case .following(let reader, let variant, let body): follow(number, reader, variant, body)
        }
    }

    private mutating func look(_ number: Int, broken: ByteSlice = .empty) {
        var question = TierLookUp(keys)
        question.vary = ByteSlice(believed[number])
        question.variant = variant(number)
        if Int.random(in: 0..<8, using: &random) > 0 { question.token = tokens.next() }
        question.broken = broken
        if Int.random(in: 0..<8, using: &random) == 0, case .stream? = streams.last.flatMap({ model.keys[name($0)] }) {
            question.stale = ByteSlice(streams.last ?? "")
        }
        let inline = Bool.random(using: &random) ? 1000 : 3
        guard let answer = try? TierAnswer(send(question.command(lease: 60_000, inlineLength: inline))) else {
            faults.append("an answer that nobody can read")
            return
        }
        if let stored = answer.stored { check(number, stored) }
        switch answer.verdict {
        case .vary(let vary): believed[number] = String(vary)
        case .hit: hits += 1
        case .join(let token, _):
            machines[number] = .following(TierReader(token), variant: number, body: "")
        case .lead:
            guard let token = question.token else { return faults.append("leads without a token") }
            let lead = TierLead(keys, variant: question.variant, token: token, lease: 60_000)
            machines[number] = .leading(lead, stored: answer.stored.map { String($0.token) })
        case .alone, .miss: break
        }
    }

    /// What is stored must be whole, and of a fetch that was finished.
    private mutating func check(_ number: Int, _ stored: TierStored) {
        let token = String(stored.token)
        if !finished.contains(token) { faults.append("a record of \(token), which did not finish") }
        var reader = TierReader(stored.token)
        let entries = try? reader.read(stored.entries)
        guard let entries, !entries.isEmpty else { return damaged.contains(token) ? () : faults.append("no head") }
        if entries.count == 1 { return }
        let body = Self.text(entries)
        if reader.state != .complete {
            if !damaged.contains(token) { faults.append("a record of \(token) that is not whole: \(body)") }
        } else if !isBody(body, of: token, length: Int(stored.length)) {
            faults.append("the body of \(token) is \(body)")
        }
    }

    private mutating func lead(_ number: Int, _ lead: TierLead, _ stored: String?) -> Machine {
        var lead = lead
        let token = String(lead.token)
        let choice = Int.random(in: 0..<12, using: &random)
        if !streams.contains(token) {
            switch choice {
            case 0: return over(lead.unshare(for: 60_000, isForOne: Bool.random(using: &random)))
            case 1: return over(lead.release)
            case 2, 3:
                guard let stored else { return over(lead.release) }
                let fresh = Bool.random(using: &random) ? 3_600_000 : 0
                return over(lead.freshen(ByteSlice(stored), with: ByteSlice("F"), fresh: fresh, lifetime: 7_200_000))
            case 4: return outcome(send(lead.renewal)) == .done ? .leading(lead, stored: stored) : .idle
            default:
                streams.append(token)
                return outcome(send(lead.head(ByteSlice("H \(token)")))) == .done
                    ? .leading(lead, stored: stored) : .idle
            }
        }
        switch choice {
        case 0: return over(lead.release)
        case 1: return outcome(send(lead.renewal)) == .done ? .leading(lead, stored: stored) : .idle
        case 2...8:
            let bytes = ByteSlice("<\(token):\(lead.length)>")
            let written = try? TierOutcome(ofEntry: send(lead.content(bytes)))
            if written == .done { return .leading(lead, stored: stored) }
            // Refused, or without a stream: the leader gives up.
            return over(lead.release)
        default:
            var keeping = TierLead.Keeping()
            if Int.random(in: 0..<4, using: &random) > 0 {
                believed[number] = ["", "v"].randomElement(using: &random) ?? ""
            }
            keeping.vary = ByteSlice(believed[number])
            keeping.variant = variant(number)
            keeping.fresh = Bool.random(using: &random) ? 3_600_000 : 0
            keeping.lifetime = Int.random(in: 0..<5, using: &random) == 0 ? 0 : 7_200_000
            let reply = send(lead.finish(keeping))
            if outcome(reply) == .done, !finished.insert(token).inserted { faults.append("\(token) finished twice") }
            if outcome(reply) == .done, !isWhole(token) { faults.append("\(token) finished with a gap") }
            return .idle
        }
    }

    private mutating func over(_ command: TierCommand) -> Machine {
        _ = outcome(send(command))
        return .idle
    }

    private mutating func outcome(_ reply: TierValue) -> TierOutcome? {
        let outcome = try? TierOutcome(reply)
        if outcome != .done { lost += 1 }
        return outcome
    }

    private mutating func follow(_ number: Int, _ reader: TierReader, _ variant: Int, _ body: String) {
        var (reader, body) = (reader, body)
        let leads = try? reader.leads(send(TierReader.lease(keys, self.variant(number))))
        let pieces = try? reader.read(send(reader.command(keys, most: Int.random(in: 1...3, using: &random))))
        guard let leads, let pieces else { return faults.append("a follower cannot read") }
        body += Self.text(pieces)
        let token = String(reader.token)
        guard isBody(body, of: token, length: reader.length) else {
            return faults.append("a follower of \(token) has \(body)")
        }
        switch reader.state {
        case .complete:
            bodies += 1
            if !finished.contains(token) { faults.append("a follower of \(token) saw an end that was refused") }
            machines[number] = .idle
        case .refused(let reason):
            if !damaged.contains(token) { faults.append("a follower of \(token) was told \(reason)") }
            machines[number] = .idle
            look(number, broken: reader.token)
        case .head, .content:
            if leads || !pieces.isEmpty {
                machines[number] = .following(reader, variant: variant, body: body)
            } else {
                machines[number] = .idle
                look(number, broken: reader.token)
            }
        }
    }

    /// Whether the stream has everything from the head to the end, whatever was lost.
    private func isWhole(_ token: String) -> Bool {
        var (model, reader) = (model, TierReader(ByteSlice(token)))
        let pieces = (try? reader.read(model.execute(reader.command(keys, most: 1000).words))) ?? []
        return reader.state == .complete && isBody(Self.text(pieces), of: token, length: reader.length)
    }

    private static func text(_ pieces: [TierReader.Piece]) -> String {
        var text = ""
        for case .content(let bytes) in pieces { text += String(bytes) }
        return text
    }

    /// Whether `text` is the beginning, of this length, of what the leader with this token writes.
    private func isBody(_ text: String, of token: String, length: Int) -> Bool {
        var whole = ""
        while whole.utf8.count < length { whole += "<\(token):\(whole.utf8.count)>" }
        return whole == text && whole.utf8.count == length
    }

    // MARK: What goes wrong

    private func name(_ token: String) -> String { String(keys.stream(ByteSlice(token))) }

    private var names: [String] {
        [String(keys.resource)]
            + ([.empty] + Self.variants).map { String(keys.lease($0)) }
            + streams.map { name($0) }
    }

    private mutating func fault() {
        switch Int.random(in: 0..<6, using: &random) {
        case 0, 1: send(["DEL", names[Int.random(in: 1..<4, using: &random)]])
        case 2:
            guard let name = names.randomElement(using: &random) else { return }
            send(["DEL", name])
        case 3:
            guard let token = streams.randomElement(using: &random),
                case .stream(let entries) = model.keys[name(token)], entries.count > 2
            else { return }
            damaged.insert(token)
            send(["XDEL", name(token), entries[Int.random(in: 0..<entries.count - 1, using: &random)].id])
        case 4:
            hasSnapshot = true
            for name in names {
                send(["DEL", "s:" + name])
                send(["COPY", name, "s:" + name])
            }
        default:
            // Another server takes over, which has not heard the latest.
            guard hasSnapshot else { return }
            damaged.formUnion(streams)
            for name in names {
                send(["DEL", name])
                send(["COPY", "s:" + name, name])
            }
        }
    }
}

extension TierValue {
    var shown: String {
        switch self {
        case .none: "nothing"
        case .integer(let number): "\(number)"
        case .text(let text): "'\(String(text))'"
        case .error(let text): "error '\(String(text))'"
        case .list(let values): "[\(values.map(\.shown).joined(separator: ", "))]"
        }
    }
}
