import Bytes
import HTTPSemantics

/// What a client connection needs while it reads: lent by its worker, so that a connection that waits holds none.
final class ReadContext {
    let buffer: ByteBuffer
    let parser: Exclusive<RequestHeadParser>
    /// Of which settings of its worker the parser's limits are.
    let generation: Int

    init(bufferCapacity: Int, limits: HeadLimits, generation: Int) {
        buffer = ByteBuffer(capacity: bufferCapacity)
        parser = Exclusive(RequestHeadParser(limits: limits))
        self.generation = generation
    }

    func reset() {
        buffer.removeAll()
        parser.use { $0.reset() }
    }
}
