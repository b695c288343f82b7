import Bytes
import Libevent
import Telemetry

/// The connection attempts of one exchange to the addresses of one server (RFC 8305 §5). The addresses may belong to
/// several places. An attempt that fails is followed by one to the next address; an attempt that takes longer than
/// `delay` gets the next one as its rival. The first connection that is established wins.
///
/// Owned by its exchange, which learns the end by `Exchange.raceEnded`, and confined to its loop.
///
/// ```
/// racing ─address takes no connection, others left→ racing
///   ├─connection established→ ended (won; the other attempts are abandoned)
///   ├─no address left→ ended (lost)
///   └─stop→ ended (told to nobody)
/// ```
final class AddressRace {
    /// How many nanoseconds a connection attempt has before an attempt to the next address begins beside it: the
    /// recommendation of RFC 8305 §8.
    private static let delay: Int64 = 250_000_000
    /// The most connection attempts of one request at a time, each with a descriptor. Addresses that do not answer are
    /// remembered, so that few requests reach this number.
    private static let most = 4

    /// One address to try, and the place that it belongs to.
    struct Candidate {
        let home: PlaceConnections
        let address: SocketAddress
    }

    enum End {
        case won(UpstreamConnection)
        /// No address took a connection.
        case lost(UpstreamError)
        /// The proxy has no descriptor, port or memory left: a connection to another server would fail, too.
        case shortage(UpstreamError)
        /// The queue of connections that the server at this Unix socket has yet to accept is full.
        case queueFull(SocketAddress)
    }

    private let pool: UpstreamPool
    /// Owns this race.
    private unowned let exchange: Exchange
    /// The addresses that are still to be tried.
    private var addresses: ArraySlice<Candidate>
    /// The numbers of the places that were tried.
    private(set) var tried: [Int] = []
    /// Connections that are being established, in the order in which they began.
    private var attempts: [UpstreamConnection] = []
    /// Begins the next connection attempt beside the pending ones.
    private var nextStart: Timer?
    /// The failure that is reported if there is no further address: that of the last one that took a connection, else
    /// that of the previous address.
    private var failure = UpstreamError(.resolve, detail: "no address")
    /// The address of the last attempt that has failed, as text.
    private var failedAddress: ByteSlice?

    /// - Parameter addresses: in the order in which they are tried.
    init(to addresses: [Candidate], of pool: UpstreamPool, for exchange: Exchange) {
        self.addresses = addresses[...]
        self.pool = pool
        self.exchange = exchange
    }

    /// The address, as text, of the latest attempt; for logs.
    var addressText: ByteSlice? { attempts.last?.addressText ?? failedAddress }

    /// Begins the first attempt, or the next one. The exchange may be told the end before this returns.
    func connectToNext() {
        guard let next = addresses.popFirst() else {
            return attempts.isEmpty ? exchange.raceEnded(.lost(failure)) : ()
        }
        tried.append(next.home.place.number)
        do throws(SystemError) {
            attempts.append(
                try UpstreamConnection(connectingTo: next.address, at: next.home, pool: pool, for: exchange))
            startNextLater()
        } catch {
            cannotConnect(to: next, error)
        }
    }

    private func cannotConnect(to candidate: Candidate, _ error: SystemError) {
        let address = candidate.address
        if attempts.isEmpty { failedAddress = ByteSlice(address.description) }
        if error.isShortageHere {
            // The connections that have begun may still be established.
            guard attempts.isEmpty else { return addresses = [] }
            return exchange.raceEnded(.shortage(UpstreamError(.unavailable, .shortage, detail: "\(address): \(error)")))
        }
        if error.isForNow, case .unix = address { return exchange.raceEnded(.queueFull(address)) }
        let failure = UpstreamError(cannotConnectTo: address, error)
        // An unreachable network is not reported: it only shows, say, that this machine has IPv4 alone.
        noteFailure(failure, at: candidate.home, isTold: !error.isUnreachableNetwork)
        // The error of another address tells more than, say, that this machine has no IPv6.
        if !error.isUnreachableNetwork || self.failure.failure == .resolve { remember(failure) }
        connectToNext()
    }

    /// Gives the attempt that has begun its time, then begins the next one beside it.
    private func startNextLater() {
        guard !addresses.isEmpty, attempts.count < Self.most else { return }
        nextStart = pool.loop.schedule(after: Self.delay) { [weak self] in self?.connectToNext() }
    }

    /// Called when an attempt has been established, or has failed.
    func connected(_ connection: UpstreamConnection, _ error: UpstreamError?) {
        if let error { return lost(connection, error) }
        stop(wonBy: connection)
        exchange.raceEnded(.won(connection))
    }

    private func lost(_ connection: UpstreamConnection, _ error: UpstreamError) {
        nextStart?.cancel()
        noteFailure(error, at: connection.home)
        if attempts.last === connection { failedAddress = connection.addressText }
        attempts.removeAll { $0 === connection }
        remember(error)
        connectToNext()
    }

    /// A name often has an address at which its server does not listen. What is wrong with the handshake at another one
    /// tells more.
    private func remember(_ error: UpstreamError) {
        if error.isOfHandshake || !failure.isOfHandshake { failure = error }
    }

    /// Abandons all other attempts. Addresses whose attempts began before the winner's, and are not established yet, are
    /// left alone for a while like failed addresses: each request would lose as much time on them.
    /// - Parameter winner: `nil`: the exchange needs no connection any more.
    func stop(wonBy winner: UpstreamConnection? = nil) {
        nextStart?.cancel()
        nextStart = nil
        addresses = []
        var isSlower = winner != nil
        for one in attempts {
            if one === winner {
                isSlower = false
                continue
            }
            if isSlower {
                noteFailure(
                    UpstreamError(.connectTimeout, detail: "\(one.address): others were faster"), at: one.home)
            }
            one.abandonExchange()
        }
        attempts = []
    }

    /// The address takes no connection. A server with others leaves it alone at once.
    private func noteFailure(_ error: UpstreamError, at place: PlaceConnections, isTold: Bool = true) {
        // The two addresses of one place are two ways to it.
        guard place.place.addresses.count == 1 else { return }
        pool.failed(
            place, .error(error), isCertain: pool.hasOthers(besides: place), isTold: isTold,
            probe: exchange.claims?.takeProbe(of: place))
    }
}
