import Bytes

/// The connection to the program that has started this one to take its place (`SuccessorProgram`).
///
/// The connection ends when the predecessor has stopped accepting, or has ended for another reason. In both cases its
/// sockets are this program's from then on.
public final class PredecessorProgram: Socket {
    private let whenReleased: () -> Void
    private let input = ByteBuffer(capacity: 16)

    /// - Parameter whenReleased: called once on the loop, perhaps before `tellAccepting`.
    public init(_ connection: consuming Descriptor, on loop: EventLoop, whenReleased: @escaping () -> Void) {
        self.whenReleased = whenReleased
        super.init(adopting: connection, on: loop)
        startReading()
    }

    /// Tells the predecessor that this program accepts. A failure means that the predecessor has ended, as the end of the
    /// connection will tell.
    public func tellAccepting() {
        let byte = ByteSlice("a")
        _ = write(byte.span)
    }

    public override func readable() {
        input.removeAll()
        switch read(into: input) {
        case .bytes, .wouldBlock: break
        case .endOfStream, .failed:
            close()
            whenReleased()
        }
    }
}
