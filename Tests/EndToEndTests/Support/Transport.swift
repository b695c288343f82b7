import Testing

/// Whether a test's conversations with the program run over TLS, and those of clients over HTTP/2. The tests are the
/// same; chosen by variables of the environment:
///
/// - `COALESCED_TEST_TRANSPORT=tls`: all clients of the program's public listener speak TLS; `tls-origins`: the scripted
///   origins, too; `http2`: the clients speak HTTP/2; `http2-tls`: HTTP/2 over TLS.
/// - `COALESCED_TEST_TLS_SEED=n`: a fifth of the tests is over TLS, by a hash of their names and `n`; with half of them,
///   the origins, too.
/// - `COALESCED_TEST_HTTP2_SEED=n`: the clients of a fifth of the tests, of another hash, speak HTTP/2; where both meet,
///   it is over TLS.
///
/// The admin listener, Unix sockets, and listeners that a test names itself stay in the clear.
struct Transport: Sendable {
    var isSecureToClients = false
    var isSecureToOrigins = false
    var isFramedToClients = false

    /// That of the clients, as Via and the access log have it.
    var version: String { isFramedToClients ? "2.0" : "1.1" }

    /// Of the test that runs.
    @TaskLocal static var current = Transport()

    /// - Parameter name: the test's.
    init(of test: Test) {
        if let seed = System.environment("COALESCED_TEST_TLS_SEED") {
            let number = Self.number(of: test.name + seed)
            isSecureToClients = number % 5 == 0
            isSecureToOrigins = number % 10 == 0
        }
        if let seed = System.environment("COALESCED_TEST_HTTP2_SEED") {
            isFramedToClients = Self.number(of: "http2" + test.name + seed) % 5 == 0
        }
        switch System.environment("COALESCED_TEST_TRANSPORT") {
        case "tls": isSecureToClients = true
        case "tls-origins": (isSecureToClients, isSecureToOrigins) = (true, true)
        case "http2": isFramedToClients = true
        case "http2-tls": (isSecureToClients, isFramedToClients) = (true, true)
        default: break
        }
        for trait in test.traits {
            guard let rule = trait as? TransportRule else { continue }
            if let clients = rule.clients { isSecureToClients = clients }
            if let origins = rule.origins { isSecureToOrigins = origins }
            if let isFramed = rule.isFramed { isFramedToClients = isFramed }
        }
    }

    init() {}

    /// FNV-1a: the same in each run, other than Swift's hash.
    private static func number(of text: String) -> UInt64 {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in text.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
        return hash >> 32
    }
}

/// What a test says of its transport, whatever the environment says.
struct TransportRule: TestTrait, SuiteTrait {
    fileprivate var clients: Bool?
    fileprivate var origins: Bool?
    fileprivate var isFramed: Bool?
    var isRecursive: Bool { true }
}

extension Trait where Self == TransportRule {
    /// The promise is one about TCP, or about the text `http`.
    static func clientsInTheClear(_ why: Comment) -> Self { Self(clients: false) }
    static func originsInTheClear(_ why: Comment) -> Self { Self(origins: false) }
    static func inTheClear(_ why: Comment) -> Self { Self(clients: false, origins: false) }
    /// The promise is one about HTTP/1.1, or HTTP/2 has no words for what the clients say.
    static func overHTTP1(_ why: Comment) -> Self { Self(isFramed: false) }
    /// The promise is one about TLS.
    static var clientsOverTLS: Self { Self(clients: true) }
}
