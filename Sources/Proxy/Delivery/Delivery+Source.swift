import Bytes
import Storage

/// What a delivery sends, and how its end is told.
extension Delivery {
    /// How the client learns where the body ends (RFC 9112 §6).
    enum Framing { case sized, chunked, untilClose }

    enum Source {
        case none
        case complete(CompleteBodyReader)
        /// All of a body that is packed with its head.
        case packed(StoredResponse)
        /// `part`: only this part of the body, which then has a known length.
        case arriving(GrowingBody, GrowingBody.Cursor, part: Range<Int>?)
        /// One behind the other, none of them such a row.
        indirect case row([Source])
        /// The body cannot be had any more: the response ends short.
        case lost
    }
}
