package import Bytes
package import HTTPSemantics

/// The handler's answer to a piece of a response body.
package enum BodyIntake: Sendable {
    case taken
    /// The piece was taken, but stop reading until `Exchange.resume()`.
    case takenAndFull
    /// Only so many bytes were taken, since there is no memory: the rest is offered again after `Exchange.resume()`.
    case refused(after: Int)
}

/// The owner of an exchange. Its methods are called on the exchange's loop, in the order of the message. No method is
/// called from inside `Exchange.start()` or `cancel()`, but `resume()`, `send(_:)` and `endContent(trailers:)` may call
/// the handler before they return. The last call is one of `endedWith`, `upgradedTo` and `failedWith`. After
/// `Exchange.cancel()` no call follows.
package protocol ExchangeHandler: AnyObject {
    /// An interim response (RFC 9110 §15.2), 100 included.
    func exchange(_ exchange: Exchange, interim head: borrowing ReceivedHead)
    /// The final response's head; its framing says which body follows.
    func exchange(_ exchange: Exchange, received head: borrowing ReceivedHead)
    /// The next piece of the body, as it arrived: never empty, and only valid during the call. The answer tells whether
    /// to go on reading.
    func exchange(_ exchange: Exchange, received body: Span<UInt8>) -> BodyIntake
    /// The response is complete. `trailers` is the trailer section in the syntax of field lines, without the last CRLF.
    func exchange(_ exchange: Exchange, endedWith trailers: ByteSlice?)
    /// A 101: the connection is no longer HTTP. `head` is the response's head; its `content` is all bytes that arrived
    /// behind it.
    func exchange(_ exchange: Exchange, upgradedTo connection: UpstreamConnection, head: borrowing ReceivedHead)
    /// No response arrived, or no more of it follows: the received part of it is not the whole.
    func exchange(_ exchange: Exchange, failedWith error: UpstreamError)
    /// Held content was sent: send more.
    func exchangeTakesContent(_ exchange: Exchange)
}

/// A response head in the connection's buffer; only valid during the call.
package struct ReceivedHead: ~Escapable {
    /// The status, the framing, and the options of the connection.
    package let head: ResponseHead
    /// The fields, in the same bytes.
    package let fields: FieldView
    /// The content, if its length is announced and all of it has arrived; it is offered as body all the same. For a
    /// 101, all bytes that arrived behind the head; they are not offered again.
    package let content: Span<UInt8>?

    /// - Parameter content: must follow the head in the bytes of the message.
    @_lifetime(copy fields, copy content)
    package init(_ head: ResponseHead, fields: FieldView, content: Span<UInt8>?) {
        self.head = head
        self.fields = fields
        self.content = content
    }

    /// This head with other fields.
    @_lifetime(copy self, copy fields)
    package func with(_ fields: FieldView) -> ReceivedHead { ReceivedHead(head, fields: fields, content: content) }
}
