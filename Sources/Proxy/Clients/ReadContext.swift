import Bytes
import HTTPSemantics

/// What a client connection needs while it reads: lent by its worker, so that a connection that waits holds none.
final class ReadContext {
    let buffer: ByteBuffer
    /// What the parser was made with.
    let limits: HeadLimits
    private var parser: RequestHeadParser?

    init(bufferCapacity: Int, limits: HeadLimits) {
        buffer = ByteBuffer(capacity: bufferCapacity)
        self.limits = limits
        parser = RequestHeadParser(limits: limits)
    }

    /// The parser, for as long as it is at work: in a local variable nothing watches its exclusive use at run time.
    func takeParser() -> RequestHeadParser {
        parser.take() ?? RequestHeadParser(limits: limits)
    }

    func putBack(_ parser: consuming RequestHeadParser) { self.parser = consume parser }

    func reset() {
        buffer.removeAll()
        parser?.reset()
    }
}
