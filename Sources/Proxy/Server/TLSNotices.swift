import Logging
import Routing
import TLS
import Upstream

/// What operators are told of the TLS to an origin, at the start and at each reload, and of that to the engine.
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

    static func tell(of tier: SharedTierSettings, _ peers: TLSPeers?, _ log: Logger) {
        guard let peers else { return }
        if let mistake = peers.mistake {
            log.error("shared tier: no TLS handshake with the engine can succeed: \(mistake)")
        }
        if !tier.tls.verifies {
            log.notice(
                "shared tier: tls.verify is off: no certificate of the engine is compared, so anyone on the way can answer for it"
            )
        }
    }
}
