import Bytes
import SharedTier

/// A resource of one test's own in an engine, with machines that ask for it.
struct Resource {
    let keys: TierKeys
    let connection: EngineConnection
    /// In milliseconds. Long enough that no lease ends by itself in a test.
    var lease = 60_000

    init(_ engine: Engine, _ name: String = #function) throws {
        connection = try EngineConnection(engine.path)
        keys = TierKeys(
            prefix: ByteSlice("t\(UInt64.random(in: 0 ... .max))"), primary: ByteSlice("http h /\(name)").span)
    }

    /// On the engine that the tests share.
    init(_ name: String = #function) throws { try self.init(Engine.shared.get(), name) }

    func question(_ token: String?, vary: String = "", _ variant: String = "") -> TierLookUp {
        var question = TierLookUp(keys)
        question.token = token.map { ByteSlice($0) }
        question.vary = ByteSlice(vary)
        question.variant = ByteSlice(variant)
        return question
    }

    func ask(_ question: TierLookUp, inlineLength: Int = TierNumbers.inlineLength) throws -> TierAnswer {
        try TierAnswer(connection.send(question.command(lease: lease, inlineLength: inlineLength)))
    }

    func ask(_ token: String?, vary: String = "", _ variant: String = "") throws -> TierAnswer {
        try ask(question(token, vary: vary, variant))
    }

    /// A leader that has the lease.
    func leader(_ token: String, vary: String = "", _ variant: String = "") throws -> TierLead {
        guard case .lead = try ask(token, vary: vary, variant).verdict else {
            throw Engine.Failure(description: "\(token) does not lead")
        }
        return TierLead(keys, variant: ByteSlice(variant), token: ByteSlice(token), lease: lease)
    }

    func outcome(_ command: TierCommand) throws -> TierOutcome { try TierOutcome(connection.send(command)) }

    func write(_ bytes: String, _ lead: inout TierLead) throws -> TierOutcome {
        try TierOutcome(ofEntry: connection.send(lead.content(ByteSlice(bytes))))
    }

    /// A complete response under `token`.
    func store(
        _ token: String, _ body: String = "hello", keeping: TierLead.Keeping = .hour, _ vary: String = "",
        _ variant: String = ""
    )
        throws
    {
        var lead = try leader(token, vary: vary, variant)
        var keeping = keeping
        keeping.vary = ByteSlice(vary)
        keeping.variant = ByteSlice(variant)
        _ = try outcome(lead.head(ByteSlice("head of \(token)")))
        if !body.isEmpty { _ = try write(body, &lead) }
        guard try outcome(lead.finish(keeping)) == .done else {
            throw Engine.Failure(description: "\(token) does not finish")
        }
    }

    /// The names of the keys that there are, without the prefix and the hash.
    func names() throws -> [String] {
        guard case .list(let names) = try connection.send("KEYS", pattern) else { return [] }
        return names.compactMap { if case .text(let name) = $0 { String(name) } else { nil } }.sorted()
    }

    private var pattern: String { String(String(keys.resource).dropLast()) + "*" }
    func stream(_ token: String) -> String { String(keys.stream(ByteSlice(token))) }
    func lease(_ variant: String = "") -> String { String(keys.lease(ByteSlice(variant))) }
    var resource: String { String(keys.resource) }
}

extension TierLead.Keeping {
    /// Fresh for an hour, of use for two.
    static let hour = {
        var keeping = TierLead.Keeping()
        (keeping.fresh, keeping.lifetime) = (3_600_000, 7_200_000)
        return keeping
    }()
    /// Stale at once, of use for two hours.
    static let stale = {
        var keeping = TierLead.Keeping()
        keeping.lifetime = 7_200_000
        return keeping
    }()
    /// For those that follow only.
    static let notKept = TierLead.Keeping()
}

extension TierStored {
    /// The pieces of the entries that came with it, and what the reader says in the end.
    func pieces() throws -> (pieces: [TierReader.Piece], state: TierReader.State) {
        var reader = TierReader(token)
        let pieces = try reader.read(entries)
        return (pieces, reader.state)
    }

    func body() throws -> String {
        var body = ""
        for case .content(let bytes) in try pieces().pieces { body += String(bytes) }
        return body
    }
}
