import HTTPSemantics
import Routing
import Storage

extension SharedAnswer.Traits {
    init(_ fetched: FetchedResponse, _ transaction: Transaction, persists: Bool) {
        let now = transaction.context.moment
        let facts = fetched.response.facts
        self.init(
            role: transaction.provenance.role, forwarded: transaction.provenance.forwarded,
            version: transaction.request.head.version, persists: persists,
            length: fetched.length ?? fetched.response.bodyLength, age: facts.age(at: now),
            timeToLive: facts.timeToLive(at: now), settings: transaction.context.loopSettings.number)
    }
}
