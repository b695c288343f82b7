package import Libevent

/// Peers of a list in the configuration.
package enum AddressPattern: Sendable, Hashable {
    /// Every peer at one of these addresses.
    case addresses(AddressBlock)
    /// Every peer that connects over a Unix socket, and so has no address.
    case unix
}

/// A list of addresses, in a form for look-up.
package struct AddressSet: Sendable {
    /// Ascending and disjoint, for binary search.
    private let ranges: [ClosedRange<IPAddress>]
    private let hasUnix: Bool

    /// The peers of all `patterns`; none if there are none.
    package init(_ patterns: [AddressPattern] = []) {
        let blocks = patterns.compactMap { if case .addresses(let block) = $0 { block.range } else { nil } }
        // Two blocks are either nested or disjoint.
        ranges = blocks.sorted {
            $0.lowerBound < $1.lowerBound || $0.lowerBound == $1.lowerBound && $0.upperBound > $1.upperBound
        }
        .reduce(into: []) { ranges, block in
            if let last = ranges.last, last.contains(block.lowerBound) { return }
            ranges.append(block)
        }
        hasUnix = patterns.contains(.unix)
    }

    /// Whether the set has `address`; `nil` is the peer of a Unix socket. Allocates nothing.
    package func contains(_ address: IPAddress?) -> Bool {
        guard let address else { return hasUnix }
        var (lower, upper) = (0, ranges.count)
        while lower < upper {
            let middle = (lower + upper) / 2
            if ranges[middle].upperBound < address { lower = middle + 1 } else { upper = middle }
        }
        return lower < ranges.count && ranges[lower].contains(address)
    }
}
