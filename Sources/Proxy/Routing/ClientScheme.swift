/// How clients reach the proxy, as their URLs say it (RFC 9110 §4.2). Everything that depends on the scheme asks here.
enum ClientScheme: Sendable {
    case http

    /// That of all clients so far.
    static var ofClients: Self { .http }

    var name: StaticString {
        switch self {
        case .http: "http"
        }
    }

    /// The port of a URL that names none.
    var defaultPort: UInt16 {
        switch self {
        case .http: 80
        }
    }

    var isSecure: Bool {
        switch self {
        case .http: false
        }
    }
}
