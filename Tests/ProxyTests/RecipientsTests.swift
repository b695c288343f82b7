import Testing

@testable import Proxy

@Suite struct RecipientsTests {
    @Test func `those who wait for the operation are not told here`() {
        var recipients = Recipients.waiters
        let takes = recipients.leaderTakesOutcome()
        let left = recipients.leaderLeaves()
        #expect(!takes && left == (false, false))
    }

    @Test(arguments: [true, false]) func `a leader takes the outcome once, and no longer waits`(isDispensable: Bool) {
        var recipients = Recipients.leader(.waiting, isDispensable: isDispensable)
        let takes = (recipients.leaderTakesOutcome(), recipients.leaderTakesOutcome())
        #expect(takes == (true, false))
        let left = recipients.leaderLeaves()
        #expect(left == (false, isDispensable))
    }

    @Test(arguments: [true, false]) func `a leader that has left gets nothing, and leaves once`(isDispensable: Bool) {
        var recipients = Recipients.leader(.waiting, isDispensable: isDispensable)
        let left = recipients.leaderLeaves()
        #expect(left == (true, isDispensable))
        let takes = recipients.leaderTakesOutcome()
        let again = recipients.leaderLeaves()
        #expect(!takes && again == (false, isDispensable))
    }
}
