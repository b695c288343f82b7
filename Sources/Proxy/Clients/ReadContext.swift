import Bytes
import HTTPSemantics
import Libevent

/// What a client connection needs while it reads: lent by its worker, so that a connection that waits holds none.
final class ReadContext {
    /// What is read into it, which says how much it takes.
    enum Purpose {
        case heads, content

        fileprivate var bufferSize: Int {
            switch self {
            case .heads: ReadContexts.bufferSize
            case .content: ReadContexts.contentBufferSize
            }
        }
    }

    let purpose: Purpose
    let buffer: ByteBuffer
    let parser: Exclusive<RequestHeadParser>
    /// The next of those that are not lent.
    fileprivate var next: ReadContext?
    /// Which settings of its worker the parser's limits come from.
    fileprivate let generation: Int

    fileprivate init(for purpose: Purpose, limits: HeadLimits, generation: Int) {
        self.purpose = purpose
        buffer = ByteBuffer(capacity: purpose.bufferSize)
        parser = Exclusive(RequestHeadParser(limits: limits))
        self.generation = generation
    }

    fileprivate func reset() {
        buffer.removeAll()
        parser.use { $0.reset() }
    }
}

/// The contexts of a worker that are not lent.
final class ReadContexts {
    /// What the buffers of clients begin with, in bytes: a whole request.
    static let bufferSize = 16 << 10
    /// What one read of a request's content takes at most, in bytes, and so what of it may wait for a slow origin. Few
    /// system calls and full segments make it cheap; much more would not stay in a core's cache.
    static let contentBufferSize = 256 << 10
    /// Large buffers for content that are lent at the same time. They come back at once, unless the content has to wait:
    /// then further clients read into as little as others do.
    static let mostForContent = 64
    /// Unused ones kept.
    private static let most = 2 * SocketRound.most

    private var limits: HeadLimits
    /// How often the limits were changed.
    private var generation = 0
    /// Those that are not lent: what was given back last, first. A list, of which taking one out and putting one in is
    /// two moves.
    private var first: ReadContext?
    private var count = 0
    private var forContent: ReadContext?
    private var lentForContent = 0

    init(limits: HeadLimits) { self.limits = limits }

    /// From now on contexts have these limits.
    func change(_ limits: HeadLimits) {
        self.limits = limits
        generation &+= 1
        while let unused = first.take() { first = unused.next.take() }
        count = 0
        forContent = nil
    }

    func lend() -> ReadContext {
        guard let context = first.take() else {
            return ReadContext(for: .heads, limits: limits, generation: generation)
        }
        first = context.next.take()
        count -= 1
        return context
    }

    /// One for content. It comes back as soon as what was read is on its way, so one mostly serves all connections.
    func lendForContent() -> ReadContext {
        guard lentForContent < Self.mostForContent else { return lend() }
        lentForContent += 1
        return forContent.take() ?? ReadContext(for: .content, limits: limits, generation: generation)
    }

    func takeBack(_ context: consuming ReadContext) {
        if context.purpose == .content { lentForContent -= 1 }
        // Drop a buffer that has grown, or one made under former limits.
        guard context.buffer.capacity <= context.purpose.bufferSize, context.generation == generation else { return }
        context.reset()
        switch context.purpose {
        case .content: forContent = context
        case .heads where count < Self.most:
            context.next = first.take()
            first = context
            count += 1
        case .heads: break
        }
    }
}
