/// An entry of the eviction queues: a response, or the notes of a resource that has no response.
enum Evictable: EvictionCandidate {
    case response(StoredResponse)
    /// Markers or known `Vary` rules. Notes are cheap to lose, so an eviction never spares them.
    case notes

    var frequency: UInt8 {
        switch self {
        case .response(let response): response.frequency
        case .notes: 0
        }
    }

    var distinction: UInt32 {
        switch self {
        case .response(let response): response.variantHash
        case .notes: 0
        }
    }

    var isInUse: Bool {
        switch self {
        case .response(let response): response.isRead
        case .notes: false
        }
    }

    func setFrequency(_ frequency: UInt8) {
        switch self {
        case .response(let response): response.setFrequency(frequency)
        case .notes: break
        }
    }
}

typealias EvictionQueues = S3FIFO<Evictable>
typealias EvictionSlot = S3FIFO<Evictable>.Slot
