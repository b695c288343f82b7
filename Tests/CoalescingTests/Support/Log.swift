@testable import Coalescing

/// What happened, in order.
final class Log<Entry: Sendable>: Sendable {
    private let kept = Protected<[Entry]>([])

    var entries: [Entry] { kept.withLock { $0 } }

    func append(_ entry: Entry) { kept.withLock { $0.append(entry) } }
}

/// What a waiter was given, in a form that can be compared.
enum Outcome: Hashable, Sendable {
    case value(Int)
    case failure(String)

    init(_ result: Result<Int, OperationError>) {
        switch result {
        case .success(let value): self = .value(value)
        case .failure(let error): self = .failure("\(error.name)")
        }
    }
}

extension Waiter<Int> {
    /// One that writes down what it is given.
    static func logging(
        to log: Log<Outcome>, on queue: any CallbackQueue = InlineQueue.shared,
        accepts: (@Sendable (Int) -> Bool)? = nil
    ) -> Waiter<Int> {
        Waiter(on: queue, accepts: accepts) { log.append(Outcome($0)) }
    }
}

struct Broken: Error {}
