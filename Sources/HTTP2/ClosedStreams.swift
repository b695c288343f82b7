/// The streams that this side has reset or refused lately: frames of theirs that were on their way are no error (RFC 9113
/// §5.1). A pure value, bounded.
struct ClosedStreams: Sendable {
    static let most = 100

    private var numbers: [Int32] = []
    private var oldest = 0
    /// Nothing is known of streams up to this one.
    private var forgotten: Int32 = 0

    mutating func add(_ stream: Int32) {
        guard numbers.count == Self.most else { return numbers.append(stream) }
        forgotten = max(forgotten, numbers[oldest])
        numbers[oldest] = stream
        oldest = (oldest + 1) % Self.most
    }

    /// Whether frames of a stream that is closed may still come.
    func mayGetFrames(_ stream: Int32) -> Bool { stream <= forgotten || numbers.contains(stream) }
}
