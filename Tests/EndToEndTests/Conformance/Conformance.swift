import Testing

/// The rule book through the running program: RFC 9111 and its companions as conversations. The rules themselves are tested in
/// `HTTPSemanticsTests`; here they are shown to be wired, with real time. The suites are in the files beside this one.
@Suite(.onStage, .atOnce) struct Conformance {}

extension Case {
    /// On the stage of the running suite.
    func perform() throws {
        let stage = try #require(Stage.shared)
        guard let reason = NotYet.reasons[promise] else { return try CaseRun.perform(self, on: stage) }
        withKnownIssue(Comment(rawValue: reason)) { try CaseRun.perform(self, on: stage) }
    }
}

extension Conformance {
    static var all: [Case] {
        Freshness.explicit + Freshness.odd + Freshness.heuristic + Freshness.age
            + Storing.responses + Storing.authorized + Storing.methods + Storing.fields
            + Requests.directives + Requests.ignored
            + Reuse.keys + Reuse.vary + Reuse.validation + Reuse.conditions + Reuse.stale + Reuse.collapsing
            + Content.ranges + Content.parts + Content.framing
            + Companions.invalidation + Companions.targeted + Companions.groups + Companions.noVarySearch
            + Companions.statusFields + Companions.interims
    }

    @Test func `every promise is made once, and only promises can be outstanding`() {
        let promises = Self.all.map(\.promise)
        let twice = Dictionary(grouping: promises) { $0 }.filter { $0.value.count > 1 }.keys.sorted()
        #expect(twice.isEmpty)
        let unknown = NotYet.reasons.keys.filter { !promises.contains($0) }
        #expect(unknown.isEmpty)
        note("conformance cases", promises.count)
    }
}
