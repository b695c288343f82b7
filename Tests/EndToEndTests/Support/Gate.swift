import Synchronization

/// A barrier in a script: whoever comes to it waits until the test opens it. Stays open.
final class Gate: Sendable {
    private struct State {
        var isOpen = false
        var waiting: [@Sendable () -> Void] = []
    }

    private let state = Mutex(State())

    var isOpen: Bool { state.withLock { $0.isOpen } }

    func open() {
        let waiting = state.withLock { state in
            state.isOpen = true
            defer { state.waiting = [] }
            return state.waiting
        }
        for wake in waiting { wake() }
    }

    /// Calls `wake` when the gate opens, or now if it is open; on whatever thread opens it.
    func whenOpen(_ wake: @escaping @Sendable () -> Void) {
        let isOpen = state.withLock { state in
            if !state.isOpen { state.waiting.append(wake) }
            return state.isOpen
        }
        if isOpen { wake() }
    }
}

extension Gate {
    static var opened: Gate {
        let gate = Gate()
        gate.open()
        return gate
    }
}
