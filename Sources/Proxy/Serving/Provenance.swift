import Bytes
import HTTPSemantics
import Telemetry

/// Where a response came from and by which part of the request in a shared fetch: what `Cache-Status`, the metrics and the access log
/// tell of it.
struct Provenance {
    var verdict: Verdict
    var role = Role.none
    /// The fetch's number; 0: none.
    var operation: UInt64 = 0
    /// Why the origin was asked; `nil` for what was answered from the store.
    var forwarded: ForwardReason?
    /// The origin's status, when that differs from what is sent; 0: none.
    var originStatus: UInt16 = 0
    var isStored = false
    /// Seconds the response stays fresh, negative when it is stale; `nil` when it cannot be reused.
    var timeToLive: Int64?
    /// Why it was not shared or stored, or what else was special (RFC 9211 §2.8).
    var detail: String?
    /// The address of the server that answered, as text.
    var server = ""

    init(_ verdict: Verdict) { self.verdict = verdict }

    /// Appends our member of `Cache-Status` as a line of its own, behind those from upstream (RFC 9211 §2).
    func appendCacheStatus(to buffer: ByteBuffer, name: ByteSlice) {
        buffer.append("Cache-Status: ")
        buffer.append(name)
        if let forwarded {
            buffer.append("; fwd=")
            buffer.append(forwarded.rawValue)
            if originStatus != 0 {
                buffer.append("; fwd-status=")
                buffer.append(decimal: UInt64(originStatus))
            }
            if isStored { buffer.append("; stored") }
            switch role {
            case .joined, .joinedLate: buffer.append("; collapsed")
            case .none, .alone, .led: break
            }
        } else {
            switch verdict {
            case .hit, .stale, .revalidated: buffer.append("; hit")
            case .miss, .pass, .synthetic, .refused: break
            }
        }
        if let timeToLive {
            buffer.append("; ttl=")
            buffer.append(decimal: Int(timeToLive))
        }
        if let detail {
            buffer.append("; detail=")
            buffer.append(detail)
        }
        buffer.append("\r\n")
    }
}
