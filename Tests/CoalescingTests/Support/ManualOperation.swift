@testable import Coalescing

/// An operation whose work is the test: it writes down what is asked of it and waits to be finished.
class ManualOperation: CoalescibleOperation<Int>, @unchecked Sendable {
    private let name: String
    let calls = Log<String>()
    let onExecute: (@Sendable (ManualOperation) -> Void)?
    let onLastLeave: (@Sendable () -> Void)?

    init(
        _ identifier: String = "a", onExecute: (@Sendable (ManualOperation) -> Void)? = nil,
        onLastLeave: (@Sendable () -> Void)? = nil, home: (any CallbackQueue)? = nil
    ) {
        self.onLastLeave = onLastLeave
        self.onExecute = onExecute
        name = identifier
        super.init(home: home)
    }

    override var identifier: (any Hashable & Sendable)? { name }

    override func execute() {
        calls.append("execute")
        onExecute?(self)
    }

    override func cancelWork() { calls.append("cancelWork") }

    override func lastWaiterLeft() {
        calls.append("lastWaiterLeft")
        onLastLeave?()
    }
}

/// The same identifier, another kind of work.
final class OtherOperation: ManualOperation, @unchecked Sendable {}

/// Without an identifier of its own.
final class NamelessOperation: CoalescibleOperation<Int>, @unchecked Sendable {}

extension CoalescibleOperation.Joining {
    var token: WaiterToken? { if case .joined(let token, _) = self { token } else { nil } }
    var isLate: Bool { if case .joined(_, let late) = self { late } else { false } }
    var refusal: Refusal? { if case .refused(let refusal) = self { refusal } else { nil } }
}

extension Enqueued {
    var refusal: Refusal? { if case .refused(let refusal, _) = self { refusal } else { nil } }
    var isStarted: Bool { if case .started = self { true } else { false } }
    var isJoined: Bool { if case .joined = self { true } else { false } }
    var isLate: Bool { if case .joined(_, _, let late) = self { late } else { false } }
}
