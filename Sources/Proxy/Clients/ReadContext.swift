import Bytes
import HTTPSemantics

/// What a client connection needs while it reads: lent by its worker, so that a connection that waits holds none.
final class ReadContext {
    let buffer: ByteBuffer
    var parser: RequestHeadParser
    /// What the parser was made with.
    let limits: HeadLimits

    init(bufferCapacity: Int, limits: HeadLimits) {
        buffer = ByteBuffer(capacity: bufferCapacity)
        self.limits = limits
        parser = RequestHeadParser(limits: limits)
    }

    func reset() {
        buffer.removeAll()
        parser.reset()
    }
}
