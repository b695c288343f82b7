import Coalescing
import Foundation
import Synchronization

/// What arrives, chunk by chunk, and anyone may read from its beginning.
final class Body: Sendable {
    private typealias Reader = AsyncThrowingStream<String, any Error>.Continuation

    private struct State: Sendable {
        var chunks: [String] = []
        /// Once it has ended.
        var end: Result<Void, any Error>?
        var readers: [Reader] = []
    }

    private let state = Mutex(State())

    var text: String { state.withLock { $0.chunks.joined() } }

    /// What is there, then what arrives, up to the end. Throws if it breaks off.
    var chunks: AsyncThrowingStream<String, any Error> {
        let (stream, reader) = AsyncThrowingStream<String, any Error>.makeStream()
        state.withLock { state in
            for chunk in state.chunks { reader.yield(chunk) }
            if let end = state.end { Self.tell(reader, end) } else { state.readers.append(reader) }
        }
        return stream
    }

    func append(_ chunk: String) {
        state.withLock { state in
            state.chunks.append(chunk)
            for reader in state.readers { reader.yield(chunk) }
        }
    }

    func end() { end(.success(())) }

    func breakOff() { end(.failure(CancellationError())) }

    private func end(_ end: Result<Void, any Error>) {
        state.withLock { state in
            state.end = end
            for reader in state.readers { Self.tell(reader, end) }
        }
    }

    private static func tell(_ reader: Reader, _ end: Result<Void, any Error>) {
        switch end {
        case .success: reader.finish()
        case .failure(let error): reader.finish(throwing: error)
        }
    }
}

/// Sends what it is told to.
final class Origin: Sendable {
    enum Event: Sendable {
        case head
        case chunk(String)
        case end
    }

    let calls = Log<String>()
    private let listener = Mutex<(@Sendable (Event) -> Void)?>(nil)

    func read(_ listener: @escaping @Sendable (Event) -> Void) {
        self.listener.withLock { $0 = listener }
        calls.append("read")
    }

    func stop() { calls.append("stop") }

    func send(_ event: Event) {
        listener.withLock { $0 }?(event)
    }

    /// Returns when it has been asked, without sleeping.
    func asked() async {
        while calls.entries.isEmpty { await Task.yield() }
    }
}
