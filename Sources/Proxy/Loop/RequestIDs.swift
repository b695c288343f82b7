import Routing

/// Makes the identifiers of requests to which their clients gave none. One for each loop, confined to it.
final class RequestIDs {
    /// Random, so that no two loops, processes or machines make the same identifiers.
    private let start = UInt64.random(in: .min ... .max)
    private var count = UInt64.random(in: .min ... .max)

    /// Another one each time: `mixed` maps no two numbers to one.
    func next() -> RequestID {
        count &+= 0x9e37_79b9_7f4a_7c15
        return RequestID(start, Self.mixed(count))
    }

    /// SplitMix64 (Steele, Lea, Flood 2014): an identifier does not tell how many were made before it at a glance.
    private static func mixed(_ number: UInt64) -> UInt64 {
        var number = number
        number = (number ^ number &>> 30) &* 0xbf58_476d_1ce4_e5b9
        number = (number ^ number &>> 27) &* 0x94d0_49bb_1331_11eb
        return number ^ number &>> 31
    }
}
