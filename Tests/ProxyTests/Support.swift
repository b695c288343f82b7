import Bytes
import HTTPSemantics
import Routing

@testable import Proxy

/// 06 Nov 1994 08:49:37 GMT, when stored responses arrived.
let arrival = Moment(monotonic: 1_000_000_000_000, wall: 784_111_777)

extension Moment {
    func after(_ seconds: Int64) -> Moment {
        Moment(monotonic: monotonic + seconds * 1_000_000_000, wall: wall + seconds)
    }
}

extension Arrival {
    /// Of a request of some client.
    static func at(_ time: Moment) -> Arrival {
        Arrival(
            time: time, peer: ByteSlice("192.0.2.1"), hasAddress: true, isFromTrustedProxy: false, madeID: .none)
    }
}
