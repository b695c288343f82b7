import Testing

/// The rule book through the running program: RFC 9111 and its companions as conversations. The rules themselves are
/// tested in `HTTPSemanticsTests`; here they are shown to be wired, with real time. The suites are in the files beside
/// this one.
@Suite(.onStage, .byDozens) struct Conformance {}

extension Case {
    /// On the stage of the running suite.
    func perform() throws {
        let stage = try #require(Stage.shared)
        try CaseRun.perform(self, on: stage)
    }
}

extension Conformance {
    /// By the names under which `docs/conformance.md` has them.
    static var tables: [(name: String, cases: [Case])] {
        [
            ("Freshness.explicit", Freshness.explicit),
            ("Freshness.odd", Freshness.odd),
            ("Freshness.heuristic", Freshness.heuristic),
            ("Freshness.age", Freshness.age),
            ("Storing.responses", Storing.responses),
            ("Storing.authorized", Storing.authorized),
            ("Storing.methods", Storing.methods),
            ("Storing.fields", Storing.fields),
            ("Requests.directives", Requests.directives),
            ("Requests.ignored", Requests.ignored),
            ("Reuse.keys", Reuse.keys),
            ("Reuse.vary", Reuse.vary),
            ("Reuse.validation", Reuse.validation),
            ("Reuse.conditions", Reuse.conditions),
            ("Reuse.stale", Reuse.stale),
            ("Reuse.collapsing", Reuse.collapsing),
            ("Content.ranges", Content.ranges),
            ("Content.parts", Content.parts),
            ("Content.framing", Content.framing),
            ("Companions.invalidation", Companions.invalidation),
            ("Companions.targeted", Companions.targeted),
            ("Companions.groups", Companions.groups),
            ("Companions.noVarySearch", Companions.noVarySearch),
            ("Companions.statusFields", Companions.statusFields),
            ("Companions.interims", Companions.interims),
        ]
    }

    static var all: [Case] { tables.flatMap(\.cases) }

    @Test func `every promise is made once`() {
        let promises = Self.all.map(\.promise)
        let twice = Dictionary(grouping: promises) { $0 }.filter { $0.value.count > 1 }.keys.sorted()
        #expect(twice.isEmpty)
        note("conformance cases", promises.count)
    }
}
