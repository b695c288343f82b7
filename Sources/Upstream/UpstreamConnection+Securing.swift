import Bytes
import Libevent
import TLS
import Telemetry

/// The TLS handshake of a new connection, within the time for connecting. A connection counts as established when it is
/// done.
extension UpstreamConnection {
    func secure(by tls: ServerTLS) {
        enter(.securing)
        do throws(TLSFailure) {
            stream = try tls.secure(self)
        } catch {
            return cannotConnect(UpstreamError(cannotSecure: address, error))
        }
        handshake()
    }

    /// Goes as far as the server's bytes lead.
    func handshake() {
        guard let stream else { return }
        do throws(TLSFailure) {
            if try goOn(with: stream) { established() }
        } catch {
            cannotConnect(UpstreamError(cannotSecure: address, error))
        }
    }

    /// The connection ended without the server's word that nothing is missing, or its bytes are no TLS any more.
    func cutOff(_ stream: TLSStream) {
        let failure = stream.failure.flatMap { $0.kind == .cut ? nil : $0 }
        switch reader.use({ $0.endOfStream() }) {
        case .beforeHead:
            fail(
                lease.sendFailure == nil ? .closed : .send, failure?.kind == .alert ? .tlsAlert : .closedBeforeResponse,
                failure?.reason ?? lease.sendFailure.map { "\($0)" })
        // Without a length, the end of the connection says nothing: anyone on the way can bring it about.
        case .complete, .truncated:
            fail(.body, .cutOff, "\(failure?.reason ?? "the connection ended without a close_notify")")
        }
    }

    /// Whether a secure connection was reported for what is neither its end nor bytes of a response: session tickets
    /// and new keys.
    var isOnlyReportedForTLS: Bool { stream != nil && isSilent }
}
