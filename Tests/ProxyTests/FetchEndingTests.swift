import Coalescing
import Telemetry
import Testing

@testable import Proxy

/// The table of endings, as `FetchEnding` has it in its comment.
@Suite struct FetchEndingTests {
    struct Row: CustomTestStringConvertible {
        let ending: FetchEnding
        /// Those who wait.
        let error: String?
        var breaksBody = false
        var keepsPart = false
        let cutsExchange: Bool
        var testDescription: String { "\(ending)" }
    }

    private struct Broken: Error {}

    @Test(arguments: [
        Row(ending: .complete, error: nil, cutsExchange: false),
        Row(ending: .stoodIn, error: nil, cutsExchange: true),
        Row(
            ending: .truncated(.origin(.body, nil), keepsPart: true), error: nil, breaksBody: true, keepsPart: true,
            cutsExchange: true),
        Row(ending: .truncated(.noMemory, keepsPart: false), error: nil, breaksBody: true, cutsExchange: true),
        Row(ending: .failed(Broken()), error: "failed", cutsExchange: true),
        Row(ending: .released, error: "released", cutsExchange: true),
        // The exchange is over: its connection is the client's.
        Row(ending: .upgraded, error: "cancelled", cutsExchange: false),
        Row(ending: .cancelled, error: "cancelled", breaksBody: true, keepsPart: true, cutsExchange: true),
    ])
    func `each ending has the effects in the table`(_ row: Row) {
        let ending = row.ending
        #expect(ending.error.map { "\($0.name)" } == row.error)
        #expect(ending.breaksBody == row.breaksBody && ending.mayKeepPart == row.keepsPart)
        #expect(ending.cutsExchange == row.cutsExchange)
    }
}
