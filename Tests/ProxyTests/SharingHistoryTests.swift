import Testing

@testable import Proxy

@Suite struct SharingHistoryTests {
    struct Row: Sendable {
        /// R: released, W: waited too long, F: failed.
        let events: String
        let isGivenUp: Bool
        let wasReleased: Bool
        var hasWaited = false
    }

    @Test(arguments: [
        Row(events: "", isGivenUp: false, wasReleased: false),
        Row(events: "R", isGivenUp: false, wasReleased: true),
        Row(events: "RR", isGivenUp: true, wasReleased: true),
        Row(events: "F", isGivenUp: true, wasReleased: false),
        Row(events: "RF", isGivenUp: true, wasReleased: true),
        Row(events: "FR", isGivenUp: true, wasReleased: true),
        Row(events: "W", isGivenUp: false, wasReleased: false, hasWaited: true),
        Row(events: "WW", isGivenUp: false, wasReleased: false, hasWaited: true),
        Row(events: "WR", isGivenUp: false, wasReleased: true, hasWaited: true),
        Row(events: "RW", isGivenUp: false, wasReleased: true, hasWaited: true),
        Row(events: "RWR", isGivenUp: true, wasReleased: true, hasWaited: true),
        Row(events: "WF", isGivenUp: true, wasReleased: false, hasWaited: true),
        Row(events: "FW", isGivenUp: true, wasReleased: false, hasWaited: true),
    ])
    func `sharing is given up after two releases, or after a failure`(row: Row) {
        var history = SharingHistory()
        for event in row.events {
            switch event {
            case "R": history.noteRelease()
            case "W": history.noteWait()
            default: history.giveUp()
            }
        }
        #expect(history.isGivenUp == row.isGivenUp && history.wasReleased == row.wasReleased)
        #expect(history.hasWaited == row.hasWaited)
    }
}
