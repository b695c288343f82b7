/// The pauses before a connection is tried again: each twice as long as the one before, up to the longest. Chance makes
/// each up to a quarter shorter or longer, so that the connections of many machines do not come in one moment. A value
/// without I/O.
struct PauseSequence: Sendable {
    private let shortest: Int64
    private let longest: Int64
    private var next: Int64

    /// - Parameters: nanoseconds.
    init(shortest: Int64, longest: Int64) {
        (self.shortest, self.longest, next) = (shortest, longest, shortest)
    }

    /// The next pause, in nanoseconds.
    mutating func pause(using random: inout some RandomNumberGenerator) -> Int64 {
        let pause = next
        next = min(longest, next * 2)
        return pause + Int64.random(in: -pause / 4...pause / 4, using: &random)
    }

    /// The connection was ready: the next pause is the shortest.
    mutating func reset() { next = shortest }
}
