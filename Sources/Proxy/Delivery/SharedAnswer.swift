import Bytes
import HTTPSemantics
import Storage
import Routing
import Telemetry

/// The answer to all requests that joined one fetch and ask for nothing special: made for one of them, with the same
/// bytes for the others. Immutable.
final class SharedAnswer: Sendable {
    /// All other properties in which answers may differ.
    struct Traits: Sendable, Equatable {
        let role: Role
        let forwarded: ForwardReason?
        let version: HTTPVersion
        let persists: Bool
        /// The length of the body, as far as it is known.
        let length: Int?
        /// The age in seconds, as it may stand in the head.
        let age: UInt32
        let timeToLive: Int64
        /// The number of the settings that determine the fields added to the head.
        let settings: Int
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
