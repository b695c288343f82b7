import Glibc

extension ScriptedOrigin {
    /// Everything the origin's thread works on.
    struct State {
        var handlers: [String: Handler] = [:]
        var received = Ledger()
        var table = PollTable()
        var connections: [Int: OriginConnection] = [:]
        var accepted = 0
        var isStopped = false
        /// How often the thread has come back from waiting.
        var round = 0
        private var listener: Int32?
        private let isSecured: Bool
        /// Has the port while the origin is down.
        private var reserved: Int32?
        private var listenerSlot: Int
        private var waiting: Set<Int> = []

        init(listener: Int32, isSecured: Bool) {
            self.listener = listener
            self.isSecured = isSecured
            listenerSlot = table.add(listener, .reading)
        }

        /// After which connections are closed on which no request comes.
        var idleTime: Duration?

        var nextDeadline: Instant? {
            let wake = waiting.compactMap { connections[$0]?.wakeAt }.min()
            guard let idleTime, let idle = connections.values.compactMap(\.idleSince).min() else { return wake }
            return min(idle + idleTime, wake ?? idle + idleTime)
        }

        mutating func work(_ slots: [Int], scratch: inout [UInt8], wake: @escaping @Sendable () -> Void) {
            round += 1
            for slot in slots {
                if slot == listenerSlot, listener != nil {
                    accept()
                } else if connections[slot] != nil {
                    connections[slot]!.readAndWrite(&received, &scratch)
                    proceed(slot, wake)
                }
            }
            for slot in waiting { proceed(slot, wake) }
            closeIdle(since: .now)
        }

        private mutating func closeIdle(since now: Instant) {
            guard let idleTime else { return }
            for (slot, connection) in connections {
                guard let since = connection.idleSince, since + idleTime <= now else { continue }
                Socket.close(connection.descriptor)
                forget(slot)
            }
        }

        private mutating func accept() {
            while let listener, let descriptor = Socket.accept(listener, isSecured: isSecured) {
                let slot = table.add(descriptor, .reading)
                connections[slot] = OriginConnection(descriptor: descriptor, serial: accepted)
                accepted += 1
            }
        }

        private mutating func proceed(_ slot: Int, _ wake: @escaping @Sendable () -> Void) {
            guard connections[slot] != nil else { return }
            connections[slot]!.proceed(&received, handlers, wake)
            let connection = connections[slot]!
            guard !connection.isClosed else { return forget(slot) }
            if connection.isWaiting { waiting.insert(slot) } else { waiting.remove(slot) }
            table.set(slot, connection.descriptor, connection.interest)
        }

        private mutating func forget(_ slot: Int) {
            connections[slot] = nil
            waiting.remove(slot)
            table.remove(slot)
        }

        mutating func goDown() {
            if let listener {
                Socket.close(listener)
                table.remove(listenerSlot)
            }
            listener = nil
            for (slot, connection) in connections {
                Socket.reset(connection.descriptor)
                forget(slot)
            }
        }

        /// If somebody else has got it in between, there is nothing to reserve.
        mutating func reserve(_ port: UInt16) {
            if reserved == nil { reserved = try? Socket.bind(port: port).descriptor }
        }

        mutating func release() {
            if let reserved { Socket.close(reserved) }
            reserved = nil
        }

        mutating func closeIdle() {
            for (slot, connection) in connections where connection.isIdle {
                Socket.close(connection.descriptor)
                forget(slot)
            }
        }
    }
}
