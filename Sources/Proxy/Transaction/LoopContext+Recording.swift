import Bytes
import Telemetry

extension LoopContext {
    /// Records a request whose response is sent or aborted.
    @inline(never)
    func record(_ sent: SentResponse, of transaction: Transaction, client: ByteSlice, security: ClientSecurity?) {
        let (request, fetched) = (transaction.request, transaction.fetched)
        let contacted = fetched == nil ? transaction.contactedServer : nil
        let server = fetched?.server ?? contacted?.address ?? .empty
        var provenance = transaction.provenance
        if sent.isAborted, let shortfall = fetched?.shortfall {
            provenance.detail = shortfall.detail
        } else if recorder.isCutOff(sent) {
            provenance.detail = Recorder.shutdown
        }
        recorder.record(
            sent, of: request, provenance, client: client.span, security: security, server: server.span,
            upstreamDuration: fetched?.upstreamDuration ?? contacted?.duration, madeID: transaction.arrival.madeID,
            resumes: fetched?.resumes ?? 0)
    }
}
