import Coalescing
import CoalescingPlaces

/// The lines of a log as they are written: read once for all who follow it, however late they come.
struct LogTail {
    let server: LogServer
    let inFlight = OperationQueueManager<String>()

    func follow(_ log: String, show: (String) -> Void) async throws {
        for try await line in inFlight.elements(for: log, work: { try await server.lines(of: log) }) { show(line) }
    }
}
