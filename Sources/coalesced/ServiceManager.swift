import Logging

/// Reports the program's state to systemd (sd_notify(3)), if `NOTIFY_SOCKET` is set.
struct ServiceManager {
    private let socket: String?
    private let log: Logger

    init(log: Logger) {
        socket = System.environment("NOTIFY_SOCKET")
        self.log = log
    }

    /// Reports that all listeners accept.
    func ready() { tell("READY=1") }
    /// Reports that the service goes on in the process `main`, which must be told before this process ends.
    func handedOver(to main: Int32) { tell("MAINPID=\(main)") }
    /// Reports that this process, started by the former main one, accepts.
    func tookOver() { tell("MAINPID=\(System.processNumber)\nREADY=1") }
    func reloading() { tell("RELOADING=1\nMONOTONIC_USEC=\(System.monotonicMicroseconds())") }
    func stopping() { tell("STOPPING=1") }

    private func tell(_ state: String) {
        guard let socket, socket.hasPrefix("/") || socket.hasPrefix("@") else { return }
        do throws(System.Failure) {
            try System.send(state, toUnixSocket: socket)
        } catch {
            log.warning("the service manager was not told", metadata: ["state": "\(state)", "reason": "\(error)"])
        }
    }
}
