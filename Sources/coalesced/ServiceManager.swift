import Logging

/// Reports the program's state to systemd (sd_notify(3)), if `NOTIFY_SOCKET` is set.
struct ServiceManager {
    private let socket: String?
    private let log: Logger
    /// Within this time the watchdog wants to hear of the program again, or ends it; `nil` without a watchdog.
    let watchdogInterval: Duration?

    init(log: Logger) {
        socket = System.environment("NOTIFY_SOCKET")
        self.log = log
        // Of another process, if this one was started by it (sd_watchdog_enabled(3)).
        let isMeant = System.environment("WATCHDOG_PID").map { Int32($0) == System.processNumber } ?? true
        let time = System.environment("WATCHDOG_USEC").flatMap { Int64($0) }.flatMap { $0 > 0 ? $0 : nil }
        watchdogInterval = isMeant && socket != nil ? time.map { .microseconds($0) } : nil
    }

    /// Reports that all listeners accept.
    func ready() { tell("READY=1") }
    /// Reports that the service goes on in the process `main`, which must be told before this process ends.
    func handedOver(to main: Int32) { tell("MAINPID=\(main)") }
    /// Reports that this process, started by the former main one, accepts.
    func tookOver() { tell("MAINPID=\(System.processNumber)\nREADY=1") }
    /// Reports that no loop is stuck.
    func alive() { tell("WATCHDOG=1") }
    /// Whether anybody reads `status`.
    var isThere: Bool { socket != nil }
    /// A state that is not read is not worth a line of the log every time.
    func status(_ text: String) { tell("STATUS=\(text)", isExpected: false) }
    func reloading() { tell("RELOADING=1\nMONOTONIC_USEC=\(System.monotonicMicroseconds())") }
    func stopping() { tell("STOPPING=1") }

    private func tell(_ state: String, isExpected: Bool = true) {
        guard let socket, socket.hasPrefix("/") || socket.hasPrefix("@") else { return }
        do throws(System.Failure) {
            try System.send(state, toUnixSocket: socket)
        } catch {
            guard isExpected else { return }
            log.warning("the service manager was not told", metadata: ["state": "\(state)", "reason": "\(error)"])
        }
    }
}
