@testable import Coalescing

/// An operation whose work is the test: it writes down what is asked of it and waits to be finished.
class ManualOperation: CoalescibleOperation<Int> {
    nonisolated let calls = Log<String>()
    nonisolated let onExecute: (@Sendable (ManualOperation) -> Void)?
    nonisolated let onLastLeave: (@Sendable () -> Void)?

    nonisolated init(
        _ identifier: String = "a", onExecute: (@Sendable (ManualOperation) -> Void)? = nil,
        onLastLeave: (@Sendable () -> Void)? = nil, home: (any CallbackQueue)? = nil
    ) {
        self.onLastLeave = onLastLeave
        self.onExecute = onExecute
        super.init(identifier: identifier, home: home)
    }

    nonisolated override func execute() {
        calls.append("execute")
        onExecute?(self)
    }

    nonisolated override func cancelWork() { calls.append("cancelWork") }

    nonisolated override func lastWaiterLeft() {
        calls.append("lastWaiterLeft")
        onLastLeave?()
    }
}

/// The same identifier, another kind of work.
final class OtherOperation: ManualOperation {}

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
