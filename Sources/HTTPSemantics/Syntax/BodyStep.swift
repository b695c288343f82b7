/// The result of one call of a body decoder.
public struct BodyStep: Sendable, Equatable {
    /// The meaning of the consumed bytes.
    public enum Action: Sendable, Equatable {
        /// This range of the input is content. The input may hold more after it: call again.
        case data(Range<Int>)
        /// The input holds no further content. Call again with the unconsumed bytes and more.
        case needMore
        /// The body is complete. The unconsumed bytes belong to the next message.
        case end
    }

    /// Bytes of the input that are consumed, including the action's data. The next input starts after them.
    public let consumed: Int
    public let action: Action

    @inlinable
    public init(_ consumed: Int, _ action: Action) {
        self.consumed = consumed
        self.action = action
    }
}
