import Bytes
import HTTPSemantics
import Libevent

/// The buffer and the parser that a client connection needs while it reads. `ReadContexts` lends them, so that an idle
/// connection holds none.
final class ReadContext {
    /// Whether content is read into the buffer, which is larger than one for heads.
    let isForContent: Bool
    let buffer: ByteBuffer
    let parser: Exclusive<RequestHeadParser>
    /// The next context in the list of contexts that are not lent.
    fileprivate var next: ReadContext?
    /// The value of `ReadContexts.generation` when the parser's limits were set.
    fileprivate let generation: Int

    fileprivate init(forContent: Bool = false, limits: HeadLimits, generation: Int) {
        isForContent = forContent
        buffer = ByteBuffer(capacity: forContent ? ReadContexts.contentBufferSize : ReadContexts.bufferSize)
        parser = Exclusive(RequestHeadParser(limits: limits))
        self.generation = generation
    }

    /// Whether the buffer holds a part of a request. Empty lines before a request do not count (RFC 9112 §2.2).
    var hasBegunHead: Bool {
        let buffer = buffer
        let bytes = buffer.span
        for index in bytes.indices where bytes[index] != 0x0d && bytes[index] != 0x0a { return true }
        return false
    }

    fileprivate func reset() {
        buffer.removeAll()
        parser.use { $0.reset() }
    }
}

/// The contexts of one loop that are not lent. Owned by its `ClientConnections`.
final class ReadContexts {
    /// Initial size of a buffer for heads, in bytes: room for a whole request.
    static let bufferSize = RequestContent.leastRoom
    /// Size of a buffer for content, in bytes: the most that one read takes, and so the most that may wait for a slow
    /// origin. It makes for few system calls and full segments; a much larger buffer would not stay in a core's cache.
    static let contentBufferSize = 256 << 10
    /// Most large buffers for content that are lent at the same time. They are returned at once, unless the content has
    /// to wait for the origin; then further clients read their content into buffers for heads.
    static let mostForContent = 64
    /// Most unused contexts that are kept.
    private static let most = 2 * SocketBatch.most

    private var limits: HeadLimits
    /// How often the limits were changed.
    private var generation = 0
    /// The contexts for heads that are not lent, most recently returned first. A linked list, in which lending and
    /// returning take two moves each.
    private var first: ReadContext?
    private var count = 0
    private var forContent: ReadContext?
    private var lentForContent = 0

    init(limits: HeadLimits) { self.limits = limits }

    /// Sets the limits of contexts lent from now on.
    func change(_ limits: HeadLimits) {
        self.limits = limits
        generation &+= 1
        while let unused = first.take() { first = unused.next.take() }
        count = 0
        forContent = nil
    }

    func lend() -> ReadContext {
        guard let input = first.take() else { return ReadContext(limits: limits, generation: generation) }
        first = input.next.take()
        count -= 1
        return input
    }

    /// Lends a context for content. It is returned as soon as its bytes are passed on, so one context mostly serves all
    /// connections.
    func lendForContent() -> ReadContext {
        guard lentForContent < Self.mostForContent else { return lend() }
        lentForContent += 1
        return forContent.take() ?? ReadContext(forContent: true, limits: limits, generation: generation)
    }

    func takeBack(_ input: consuming ReadContext) {
        if input.isForContent { lentForContent -= 1 }
        // Drop a buffer that has grown, or one made under former limits.
        let size = input.isForContent ? Self.contentBufferSize : Self.bufferSize
        guard input.buffer.capacity <= size, input.generation == generation else { return }
        input.reset()
        if input.isForContent {
            forContent = input
        } else if count < Self.most {
            input.next = first.take()
            first = input
            count += 1
        }
    }
}
