import Bytes
import HTTPSemantics

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
    private static let most = 32

    private var limits: HeadLimits
    /// How often the limits were changed.
    private var generation = 0
    /// The one that is lent and given back again and again, and others for when several are lent.
    private var first: ReadContext?
    private var others: [ReadContext] = []
    private var forContent: ReadContext?
    private var lentForContent = 0

    init(limits: HeadLimits) { self.limits = limits }

    /// From now on contexts have these limits.
    func change(_ limits: HeadLimits) {
        self.limits = limits
        generation &+= 1
        first = nil
        others.removeAll()
        forContent = nil
    }

    func lend() -> ReadContext {
        first.take() ?? others.popLast() ?? ReadContext(for: .heads, limits: limits, generation: generation)
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
        case .heads where first == nil: first = context
        case .heads: if others.count < Self.most { others.append(context) }
        }
    }
}
