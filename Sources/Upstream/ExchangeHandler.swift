public import Bytes
public import HTTPSemantics

/// What became of a piece of a response body that was offered.
public enum BodyIntake: Sendable {
    case taken
    /// Taken, but stop reading until `Exchange.resume()`.
    case takenAndFull
    /// Only so many bytes were taken, there is no memory: the rest is offered again after `Exchange.resume()`.
    case refused(after: Int)
}

/// Who runs an exchange. Called on the exchange's loop, in the order of the message; not from inside `Exchange.start()`
/// or `cancel()`, while `resume()`, `send(_:)` and `endContent(trailers:)` may call back before they return. The last
/// call is one of `endedWith`, `upgradedTo` and `failedWith`; after `Exchange.cancel()` there is none.
public protocol ExchangeHandler: AnyObject {
    /// An interim response (RFC 9110 §15.2), 100 included.
    func exchange(_ exchange: Exchange, interim head: borrowing ReceivedHead)
    /// The final response's head; its framing says what body follows.
    func exchange(_ exchange: Exchange, received head: borrowing ReceivedHead)
    /// The next piece of the body, as it arrived: never empty, gone after the call. The answer tells whether to go on
    /// reading.
    func exchange(_ exchange: Exchange, received body: Span<UInt8>) -> BodyIntake
    /// The response is complete. `trailers` is the trailer section in the syntax of field lines, without the last CRLF.
    func exchange(_ exchange: Exchange, endedWith trailers: ByteSlice?)
    /// A 101: the connection is no longer HTTP. `head` is the response's; its `content` is what came right behind it.
    func exchange(_ exchange: Exchange, upgradedTo connection: UpstreamConnection, head: borrowing ReceivedHead)
    /// There is no response, or no more of it: whatever came of it is not the whole.
    func exchange(_ exchange: Exchange, failedWith error: UpstreamError)
    /// Content that was held back went out: send more.
    func exchangeTakesContent(_ exchange: Exchange)
}

/// A response head where it stands in the connection's buffer; gone after the call.
public struct ReceivedHead: ~Escapable {
    /// Status, framing and what concerns the connection.
    public let head: ResponseHead
    /// The fields, in the same bytes.
    public let fields: FieldView
    /// The content, where its length is announced and all of it is here already; it is offered all the same. Of a 101
    /// all that is here, which is not offered again.
    public let content: Span<UInt8>?

    @_lifetime(copy fields, copy content)
    init(_ head: ResponseHead, fields: FieldView, content: Span<UInt8>?) {
        self.head = head
        self.fields = fields
        self.content = content
    }
}
