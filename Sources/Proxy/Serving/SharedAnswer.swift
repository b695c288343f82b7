import Bytes
import HTTPSemantics
import Storage
import Telemetry

/// The answer to all requests that joined one fetch and ask for nothing special: made for one of them, with the same
/// bytes for the others. Immutable.
final class SharedAnswer: Sendable {
    /// All other properties in which answers may differ.
    struct Traits: Sendable, Equatable {
        private let role: Role
        private let forwarded: ForwardReason?
        private let version: HTTPVersion
        private let persists: Bool
        /// The length of the body, as far as it is known.
        private let length: Int?
        /// The age in seconds, as it may stand in the head.
        private let age: UInt32
        private let timeToLive: Int64
        /// The number of the settings that determine the fields added to the head.
        private let settings: Int

        init(_ fetched: FetchedResponse, _ transaction: Transaction, persists: Bool) {
            let now = transaction.worker.moment
            let facts = fetched.response.facts
            role = transaction.provenance.role
            forwarded = transaction.provenance.forwarded
            version = transaction.request.head.version
            self.persists = persists
            length = fetched.length ?? fetched.response.bodyLength
            age = facts.age(at: now)
            timeToLive = facts.timeToLive(at: now)
            settings = transaction.worker.loopSettings.number
        }
    }

    let traits: Traits
    let provenance: Provenance
    let answer: Answer
    let head: ByteSlice

    init(traits: Traits, provenance: Provenance, answer: Answer, head: ByteSlice) {
        self.traits = traits
        self.provenance = provenance
        self.answer = answer
        self.head = head
    }
}
