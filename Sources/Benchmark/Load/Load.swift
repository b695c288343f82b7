import Foundation
import Synchronization

/// The requests of one row, and the result of one run.
struct Load {
    var method = "GET"
    var path: String
    /// Field lines of the head, each with its line end.
    var fields = ""
    /// Bytes of each request's body.
    var body = 0
    var connections = 64
    /// The number of requests in one write.
    var pipelined = 1
    var numbers = RequestText.Numbers.none
    /// The status and length that every response must have. The bare responder sends 200 to all requests.
    var status = 200
    var length: Int
    /// Whether each request has a connection of its own.
    var isRenewing = false
    /// Whether a worker needs the core of the load.
    var sharesCore = false
    /// Whether every response must come from the store.
    var isOfHits = true

    struct Result {
        var requests = 0.0
        var perSecond = 0.0
        /// In microseconds.
        var p50 = 0.0, p99 = 0.0, p999 = 0.0
        /// Microseconds per request.
        var cpu = ProcessTree.CPU()
        /// Connections that broke, and responses with the wrong status or length.
        var errors = 0.0
        var wrong = 0.0
        /// Requests that reached the origin although all should have been hits.
        var missed = 0.0
        /// The share of its core that the program used, and the share of the other core that the load and the origin
        /// used, in percent.
        var serverBusy = 0.0
        var loadBusy = 0.0
    }

    private static let runs = Atomic<Int>(0)

    /// Runs on the calling thread.
    ///
    /// - Parameters:
    ///   - origin: the origin of `program`; it does not sleep meanwhile.
    ///   - during: called once a millisecond with the milliseconds that have passed.
    /// - Returns: nil if no response came.
    func run(against program: Program, _ origin: Origin, seconds: Double, during: (Int64) -> Void = { _ in }) -> Result?
    {
        var loop = loop(port: program.port, isBare: program.kind == .bare)
        origin.spins = true
        defer { origin.spins = false }
        let (own, idleOrigin, asked) = (System.processTime, origin.idle, origin.asked)
        let before = program.tree.cpu
        loop.run(nanoseconds: Int64(seconds * 1e9)) { during($0 / 1_000_000) }
        let spent = program.tree.cpu - before
        let used = System.processTime - own - loop.idle - (origin.idle - idleOrigin)
        let requests = Double(loop.answers + loop.wrong)
        guard requests > 0 else { return nil }
        let elapsed = Double(loop.elapsed) / 1000
        return Result(
            requests: requests, perSecond: requests / elapsed * 1e6,
            p50: loop.latencies.percentile(50), p99: loop.latencies.percentile(99),
            p999: loop.latencies.percentile(99.9),
            cpu: spent / requests,
            errors: Double(loop.failures), wrong: Double(loop.wrong),
            missed: isOfHits ? Double(origin.asked - asked) : 0,
            serverBusy: min(100, 100 * spent.total / elapsed), loadBusy: min(100, 100 * Double(used) / 1000 / elapsed))
    }

    /// - Parameter isBare: whether the requests go to the bare responder.
    func loop(port: Int, isBare: Bool) -> LoadLoop {
        let run = Self.runs.add(1, ordering: .relaxed).newValue
        let request = RequestText(
            method: method, path: path.replacingOccurrences(of: "RUN", with: "\(run)"), fields: fields, body: body,
            count: pipelined,
            numbers: numbers, port: port)
        return LoadLoop(
            port: port, connections: connections, request: request, status: isBare ? 200 : status, length: length,
            isRenewing: isRenewing, takesTurns: sharesCore)
    }
}
