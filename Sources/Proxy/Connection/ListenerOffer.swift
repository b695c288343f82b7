import Routing
import TLS

/// What a listener offers to its clients, beside HTTP/1.1.
struct ListenerOffer {
    /// Whether clients show certificates in the handshake of TLS; `nil`: there is no TLS.
    let certificates: ClientCertificates?
    let speaksHTTP2: Bool

    static let plain = ListenerOffer(certificates: nil, speaksHTTP2: true)
}

extension ListenerOffer {
    init(of listener: ListenerSettings) {
        self.init(
            certificates: listener.isSecure ? listener.clientCertificates : nil, speaksHTTP2: listener.speaksHTTP2)
    }
}
