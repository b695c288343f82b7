import Logging
import Routing
import Upstream

/// What operators are told, at the start and at each reload, of the TLS to an origin.
enum TLSNotices {
    static func tell(of origin: Origin, _ log: Logger) {
        guard let tls = origin.group.tls else { return }
        let name = origin.settings.name
        if let mistake = tls.mistake {
            log.error("upstream \(name): no TLS handshake with its servers can succeed: \(mistake)")
        }
        if !origin.settings.tls.verifies {
            log.notice(
                "upstream \(name): tls.verify is off: no certificate of its servers is compared, so anyone on the way can answer for them"
            )
        }
    }
}
