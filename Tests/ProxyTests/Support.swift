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
    /// - Parameter purges: how many purges of tags there had been.
    static func at(_ time: Moment, after purges: UInt64 = 1) -> Arrival {
        Arrival(
            time: time, generation: purges, peer: ByteSlice("192.0.2.1"), hasAddress: true, isFromTrustedProxy: false,
            security: nil,
            madeID: .none)
    }
}
