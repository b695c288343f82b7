import Testing

@testable import Proxy

@Suite struct SharingHistoryTests {
    struct Row: Sendable {
        /// R: released, F: too slow, or failed.
        let events: String
        let isGivenUp: Bool
        let wasReleased: Bool
    }

    @Test(arguments: [
        Row(events: "", isGivenUp: false, wasReleased: false),
        Row(events: "R", isGivenUp: false, wasReleased: true),
        Row(events: "RR", isGivenUp: true, wasReleased: true),
        Row(events: "F", isGivenUp: true, wasReleased: false),
        Row(events: "RF", isGivenUp: true, wasReleased: true),
        Row(events: "FR", isGivenUp: true, wasReleased: true),
    ])
    func `it is given up once released twice, or after a failure, which is no release`(row: Row) {
        var history = SharingHistory.untried
        for event in row.events { if event == "R" { history.noteRelease() } else { history.giveUp() } }
        #expect(history.isGivenUp == row.isGivenUp && history.wasReleased == row.wasReleased)
    }
}
