import CLibevent
import Glibc

/// One question to a `Resolver`, until it is answered or cancelled.
///
/// asking ─addresses, a name that does not exist, timeout→ answering ─end of iteration→ over;   any ─cancel→ over
///    └─no address→ asking why, family by family ─result, timeout→ answering
@safe public final class NameLookup {
    @safe private enum State {
        /// evdns's callback is still to come. `nil` until evdns has returned its side of the question.
        case asking(OpaquePointer?)
        /// evdns's callback for one family is still to come. `left`: the families that are still to be asked.
        case askingWhy(OpaquePointer, left: ArraySlice<Resolver.Family>)
        case answering
        case over
    }

    private let servers: NameServers
    private let port: UInt16
    private let family: Resolver.Family
    private var state = unsafe State.asking(nil)
    /// Released once over.
    private var completion: ((Resolver.Answer) -> Void)?
    private var host = ""
    private var timer: Timer?

    init(
        _ servers: NameServers, _ port: UInt16, _ family: Resolver.Family,
        _ completion: @escaping (Resolver.Answer) -> Void
    ) {
        self.servers = servers
        self.port = port
        self.family = family
        self.completion = completion
    }

    /// The completion is not called any more, and is released. On the loop's thread.
    public func cancel() {
        giveUpAsking()
        completion = nil
    }

    /// Never inside `resolve`: the caller has not yet kept what it gets back.
    func answerLater(_ answer: Resolver.Answer) {
        state = .answering
        servers.loop.atIterationEnd { [self] in
            guard case .answering = state else { return }
            state = .over
            let completion = completion.take()
            completion?(answer)
        }
    }

    func start(_ host: String, timeout: Int64) {
        self.host = host
        timer = servers.loop.schedule(after: timeout) { [weak self] in self?.timeOut() }
        var hints = unsafe addrinfo()
        unsafe hints.ai_family = family.code
        unsafe hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        // No AI_ADDRCONFIG: evdns looks once which families this machine has, when it is first asked, and an interface
        // may come later. Nor would the hosts file's `::1` be found where there is no other IPv6 address.
        unsafe hints.ai_flags = 0
        // evdns calls back exactly once, perhaps before it returns: that call releases what is retained here.
        servers.loop.pendingLookups += 1
        let parcel = unsafe Unmanaged.passRetained(self).toOpaque()
        let request = unsafe evdns_getaddrinfo(
            servers.base, host, nil, &hints,
            { code, found, parcel in
                defer { if let found = unsafe found { unsafe evutil_freeaddrinfo(found) } }
                guard let parcel = unsafe parcel else { return }
                unsafe Unmanaged<NameLookup>.fromOpaque(parcel).takeRetainedValue().receive(code, found)
            }, parcel)
        if let request = unsafe request { unsafe state = .asking(request) }
    }

    private func receive(_ code: Int32, _ found: UnsafeMutablePointer<addrinfo>?) {
        called()
        guard case .asking = state else { return }
        // It reports a name without addresses and a failing server alike.
        if code == EAI_FAIL { return askWhy(family.each) }
        let addresses = unsafe read(found)
        conclude(
            code == 0 && !addresses.isEmpty
                ? .success(addresses) : .failure(code == 0 ? .notFound : ResolveError(code: code)))
    }

    /// Asks for each of `families` once more, by a question that tells the reason.
    private func askWhy(_ families: ArraySlice<Resolver.Family>) {
        guard let next = families.first else { return conclude(.failure(.notFound)) }
        let callback: evdns_callback_type = { result, type, count, _, addresses, parcel in
            guard let parcel = unsafe parcel else { return }
            let found = unsafe NameLookup.read(type, count, addresses)
            unsafe Unmanaged<NameLookup>.fromOpaque(parcel).takeRetainedValue().receive(reason: result, found)
        }
        servers.loop.pendingLookups += 1
        let parcel = unsafe Unmanaged.passRetained(self)
        let question =
            unsafe next == .ipv6
            ? evdns_base_resolve_ipv6(servers.base, host, 0, callback, parcel.toOpaque())
            : evdns_base_resolve_ipv4(servers.base, host, 0, callback, parcel.toOpaque())
        guard let question = unsafe question else {
            unsafe parcel.release()
            servers.loop.pendingLookups -= 1
            return conclude(.failure(.localFailure))
        }
        unsafe state = .askingWhy(question, left: families.dropFirst())
    }

    /// - Parameter found: what it has by now, without the port.
    private func receive(reason: Int32, _ found: [SocketAddress]) {
        called()
        guard case .askingWhy(_, let left) = state else { return }
        switch reason {
        case DNS_ERR_NONE where !found.isEmpty: conclude(.success(found.map { $0.withPort(port) }))
        case DNS_ERR_NODATA, DNS_ERR_NOTEXIST: askWhy(left)
        case DNS_ERR_TIMEOUT: conclude(.failure(.timedOut))
        default: conclude(.failure(.serverFailed))
        }
    }

    /// evdns calls.
    private func called() {
        servers.loop.pendingLookups -= 1
        // It is still at work below this callback, and ours may be the last reference to its base.
        servers.loop.atIterationEnd { [servers] in withExtendedLifetime(servers) {} }
    }

    private func conclude(_ answer: Resolver.Answer) {
        timer?.cancel()
        timer = nil
        answerLater(answer)
    }

    private func timeOut() {
        giveUpAsking()
        answerLater(.failure(.timedOut))
    }

    private func giveUpAsking() {
        timer?.cancel()
        timer = nil
        let former = state
        state = .over
        // The callback still comes, in a later iteration, and finds that nobody asks any more.
        switch former {
        case .asking(let request): if let request = unsafe request { unsafe evdns_getaddrinfo_cancel(request) }
        case .askingWhy(let question, _): unsafe evdns_cancel_request(servers.base, question)
        case .answering, .over: break
        }
    }

    /// The answer to a plain question: `count` addresses of 4 or 16 bytes in network order.
    private static func read(_ type: CChar, _ count: Int32, _ memory: UnsafeMutableRawPointer?) -> [SocketAddress] {
        guard let memory = unsafe memory else { return [] }
        return (0..<Int(count)).compactMap { index in
            switch Int32(type) {
            case DNS_IPv4_A:
                let bits = unsafe memory.loadUnaligned(fromByteOffset: index * 4, as: UInt32.self)
                return .ipv4(IPv4Address(bits: UInt32(bigEndian: bits)), port: 0)
            case DNS_IPv6_AAAA:
                let high = unsafe memory.loadUnaligned(fromByteOffset: index * 16, as: UInt64.self)
                let low = unsafe memory.loadUnaligned(fromByteOffset: index * 16 + 8, as: UInt64.self)
                return .ipv6(IPv6Address(high: UInt64(bigEndian: high), low: UInt64(bigEndian: low)), port: 0)
            default:
                return nil
            }
        }
    }

    /// IPv4 first, otherwise in the order of the answer, each address once.
    private func read(_ found: UnsafeMutablePointer<addrinfo>?) -> [SocketAddress] {
        var ipv4: [SocketAddress] = []
        var others: [SocketAddress] = []
        var next = unsafe found
        while let entry = unsafe next {
            unsafe next = entry.pointee.ai_next
            // `ai_addr` points to `ai_addrlen` bytes of some sockaddr_*.
            let bytes = unsafe UnsafeRawBufferPointer(
                start: entry.pointee.ai_addr, count: Int(entry.pointee.ai_addrlen))
            guard let address = unsafe SocketAddress.read(bytes, length: bytes.count)?.withPort(port) else { continue }
            if case .ipv4 = address {
                if !ipv4.contains(address) { ipv4.append(address) }
            } else if !others.contains(address) {
                others.append(address)
            }
        }
        return ipv4 + others
    }
}
