import Bytes
import Libevent
import TLS

/// One check of one place: a connection of its own, a GET, and the response to it. It uses no idle connection, and does
/// not ask again: checks are there to find failures. No metric of the origin counts it.
///
/// Owned by `HealthChecks`, confined to its loop.
///
/// ```
/// connecting ─no connection, or no handshake, another address is left→ connecting
///     │  └─no connection, or no handshake→ ended
///     └─connected→ asking ─the response is judged, the connection is closed→ ended
/// connecting, asking ─the time limit is over→ ended        any ─stop→ ended (told to nobody)
/// ```
final class Check {
    private let health: HealthSettings
    private let maxHeadSize: Int
    private let request: ByteSlice
    private let tls: ServerTLS?
    private let loop: EventLoop
    /// The addresses that are still to be tried.
    private var addresses: ArraySlice<SocketAddress>
    private var connection: CheckConnection?
    private var limit: Timer?
    /// The failure of the address before.
    private var failure = CheckFailure.noAddress("none is known")
    /// `nil` once the check has ended.
    private var completion: ((CheckEnd) -> Void)?

    /// - Parameters:
    ///   - addresses: the addresses of the place. The first that takes a connection is asked.
    ///   - settings: the settings of the origin.
    ///   - tls: `nil` in the clear. No other check has it, so that each compares the certificate.
    ///   - completion: called once, perhaps from inside `start`, unless the check is stopped.
    init(
        of server: UpstreamServer, at addresses: [SocketAddress], _ health: HealthSettings,
        _ settings: UpstreamSettings, _ tls: ServerTLS?, on loop: EventLoop, completion: @escaping (CheckEnd) -> Void
    ) {
        self.health = health
        maxHeadSize = settings.maxHeadSize
        request = Self.request(to: server, health, settings)
        self.addresses = addresses[...]
        self.tls = tls
        self.loop = loop
        self.completion = completion
    }

    static func request(to server: UpstreamServer, _ health: HealthSettings, _ settings: UpstreamSettings)
        -> ByteSlice
    {
        let host = health.host.isEmpty ? settings.host ?? server.authority : health.host
        return ByteSlice(
            "GET \(health.path) HTTP/1.1\r\nHost: \(host)\r\nUser-Agent: coalesced-check\r\nAccept: */*\r\nConnection: close\r\n\r\n"
        )
    }

    func start() {
        limit = loop.schedule(after: health.timeout.nanoseconds) { [weak self] in
            guard let self else { return }
            end(.failed(.late(health.timeout)))
        }
        connectToNext()
    }

    /// Ends the check without a call of `completion`. A second call does nothing.
    func stop() {
        completion = nil
        limit?.cancel()
        connection?.close()
        connection = nil
    }

    private func connectToNext() {
        guard let address = addresses.popFirst() else { return end(.failed(failure)) }
        do throws(SystemError) {
            let judge = CheckJudge(health, maxHeadSize: maxHeadSize)
            connection = try CheckConnection(to: address, request, judge, tls, on: loop) { [weak self] end in
                self?.ended(end)
            }
        } catch {
            cannotConnect(error)
        }
    }

    private func ended(_ end: CheckConnection.End) {
        switch end {
        case .notConnected(let error): cannotConnect(error)
        case .notSecured(let error): cannotSecure(error)
        case .judged(let judgement): self.end(judgement)
        }
    }

    private func cannotConnect(_ error: SystemError) {
        if error.isShortageHere { return end(.undecided) }
        failure = .noConnection(error.message)
        connectToNext()
    }

    private func cannotSecure(_ error: TLSFailure) {
        if error.kind == .shortage { return end(.undecided) }
        failure = .handshake(error.reason)
        connectToNext()
    }

    private func end(_ end: CheckEnd) {
        let completion = completion
        stop()
        completion?(end)
    }
}

extension UpstreamServer {
    /// The value of `Host` for the server itself (RFC 9110 §7.2).
    fileprivate var authority: String {
        switch location {
        case .tcp(_, let port) where port != defaultPort: "\(host):\(port)"
        case .tcp, .unix: host
        }
    }
}
