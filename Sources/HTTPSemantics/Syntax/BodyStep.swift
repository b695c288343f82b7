/// What one call of a body decoder made of its input.
public struct BodyStep: Sendable, Equatable {
    /// What the consumed bytes came to.
    public enum Action: Sendable, Equatable {
        /// This range of the input is content. There may be more in the input after it: call again.
        case data(Range<Int>)
        /// Nothing more can be read from this input. Call again when there is more than what was not consumed.
        case needMore
        /// The body is complete. What was not consumed belongs to the next message.
        case end
    }

    /// Bytes of the input that are done with, the action's data included. The next input starts after them.
    public let consumed: Int
    public let action: Action

    @inlinable
    public init(_ consumed: Int, _ action: Action) {
        self.consumed = consumed
        self.action = action
    }
}
