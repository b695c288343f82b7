internal import CLibevent
internal import Glibc

/// One question to a `Resolver`, until it is answered or cancelled.
///
/// asking ─callback, timeout→ answering ─end of iteration→ over; ─cancel→ over from both
@safe public final class NameLookup {
    private let servers: NameServers
    private let port: UInt16
    private let family: Resolver.Family
    /// `nil` once over.
    private var completion: ((Resolver.Answer) -> Void)?
    /// evdns's side. Set as long as its callback is still to come.
    private var request: OpaquePointer?
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
        completion = nil
        giveUpAsking()
    }

    /// Never inside `resolve`: the caller has not yet kept what it gets back.
    func answerLater(_ answer: Resolver.Answer) {
        servers.loop.afterBatch { [self] in
            let completion = completion.take()
            completion?(answer)
        }
    }

    func start(_ host: String, timeout: Int64) {
        var hints = unsafe addrinfo()
        unsafe hints.ai_family = family.code
        unsafe hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        // Do not ask for addresses of a family this machine cannot reach.
        unsafe hints.ai_flags = EVUTIL_AI_ADDRCONFIG
        // evdns calls back exactly once, perhaps before it returns: that call releases what is retained here.
        servers.loop.pendingLookups += 1
        let parcel = unsafe Unmanaged.passRetained(self).toOpaque()
        let request = unsafe evdns_getaddrinfo(servers.base, host, nil, &hints, { code, found, parcel in
            defer { if let found = unsafe found { unsafe evutil_freeaddrinfo(found) } }
            guard let parcel = unsafe parcel else { return }
            unsafe Unmanaged<NameLookup>.fromOpaque(parcel).takeRetainedValue().receive(code, found)
        }, parcel)
        guard let request = unsafe request else { return }
        unsafe self.request = request
        timer = servers.loop.schedule(after: timeout) { [weak self] in self?.timeOut() }
    }

    private func receive(_ code: Int32, _ found: UnsafeMutablePointer<addrinfo>?) {
        servers.loop.pendingLookups -= 1
        // evdns is still at work behind this callback, and its base may be ours to free last.
        servers.loop.afterBatch { [servers] in withExtendedLifetime(servers) {} }
        unsafe request = nil
        timer?.cancel()
        timer = nil
        guard completion != nil else { return }
        let addresses = unsafe read(found)
        answerLater(code == 0 && !addresses.isEmpty ? .success(addresses) : .failure(code == 0 ? .notFound : ResolveError(code: code)))
    }

    private func timeOut() {
        giveUpAsking()
        answerLater(.failure(.timedOut))
    }

    private func giveUpAsking() {
        timer?.cancel()
        timer = nil
        // Its callback still comes, in a later iteration, and finds no completion.
        if let asked = unsafe request { unsafe evdns_getaddrinfo_cancel(asked) }
        unsafe request = nil
    }

    /// IPv4 first, otherwise in the order of the answer, each address once.
    private func read(_ found: UnsafeMutablePointer<addrinfo>?) -> [SocketAddress] {
        var ipv4: [SocketAddress] = []
        var others: [SocketAddress] = []
        var next = unsafe found
        while let entry = unsafe next {
            unsafe next = entry.pointee.ai_next
            // `ai_addr` points to `ai_addrlen` bytes of some sockaddr_*.
            let bytes = unsafe UnsafeRawBufferPointer(start: entry.pointee.ai_addr, count: Int(entry.pointee.ai_addrlen))
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
