import Bytes
import Libevent
import Storage

/// The bodies that a delivery sends, and how their end is marked.
extension Delivery {
    /// How the client learns where the body ends (RFC 9112 §6).
    enum Framing { case sized, chunked, untilClose }

    /// The sources of one response's body.
    enum Sources {
        case one(Source)
        /// The whole body of a response that is packed with its head.
        case packed(StoredResponse)
        /// Several sources, sent one after the other.
        case row([Source])

        /// Adds the whole body: behind `head` if it is packed, otherwise to `list`, which is empty.
        /// - Returns: false, with nothing added, if the body is not complete, or does not fit.
        func gatherAll(into list: GatherList, behind head: ByteBuffer) -> Bool {
            switch self {
            case .one(.none): return true
            case .packed(let response):
                return response.appendPacked(0..<(response.bodyLength ?? 0), to: head)
            case .one(.complete(let reader)): return reader.gatherAll(into: list)
            case .one(.arriving), .one(.lost), .row: return false
            }
        }
    }

    enum Source {
        case none
        case complete(CompleteBodyReader)
        /// A body that is still arriving. With `part`, only this range of it is sent, whose length is known.
        case arriving(GrowingBody, GrowingBody.Cursor, part: Range<Int>?)
        /// The body has been dropped: the response is cut off.
        case lost

        /// All of `bytes`.
        static func all(of bytes: ByteSlice) -> Source {
            .complete(CompleteBodyReader(ShortList(one: bytes), part: 0..<bytes.count))
        }

        var isArriving: Bool {
            switch self {
            case .arriving: true
            case .none, .complete, .lost: false
            }
        }

        func isHeldUpTooLong(at now: Int64, _ bound: HoldUpBound) -> Bool {
            switch self {
            case .arriving(let body, let cursor, _): body.isHeldUpTooLong(by: cursor, at: now, bound)
            case .none, .complete, .lost: false
            }
        }

        /// Marks the bodies as being read: the store passes them over when it evicts.
        func begin() {
            switch self {
            case .none, .lost: break
            case .complete(let reader): for body in reader.bodies { body.beginReading() }
            case .arriving(let body, _, _): body.beginReading()
            }
        }

        /// Ends the reading of the bodies. Bytes that only this client still needed are freed.
        func end() {
            switch self {
            case .none, .lost: break
            case .complete(let reader): for body in reader.bodies { body.endReading() }
            case .arriving(let body, let cursor, _):
                body.detach(cursor)
                body.endReading()
            }
        }
    }
}
