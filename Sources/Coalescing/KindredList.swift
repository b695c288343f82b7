/// Elements that come and leave in constant time, found by what they have in common: a number, of which each has one or
/// none. In no order.
///
/// A list inside an array, as `SlotList`, but instead of one chain in order of arrival there is one for each value of
/// the number's lower bits, twice as many when they get long. So the number should be a hash.
struct KindredList<Element> {
    struct Slot {
        var element: Element?
        var stay: UInt32 = 0
        /// In its chain.
        var previous = KindredList.none
        /// The next in its chain; for a free slot the next free one.
        var next = KindredList.none
        var kin: Int?
    }

    static var none: Int32 { -1 }
    private static var fewestChains: Int { 16 }

    private var slots: [Slot] = []
    private var firstFree = KindredList.none
    /// The first of each chain. None before an element with a number came.
    private var chains: [Int32] = []
    /// Elements that are in a chain.
    private var chained = 0

    /// All that are here.
    var elements: [Element] { slots.compactMap(\.element) }

    /// Those with this number. Looks at no others but the few whose lower bits are the same.
    func elements(akinTo kin: Int) -> [Element] {
        guard !chains.isEmpty else { return [] }
        var found: [Element] = []
        var index = chains[kin & (chains.count - 1)]
        while index != Self.none {
            let slot = slots[Int(index)]
            if slot.kin == kin, let element = slot.element { found.append(element) }
            index = slot.next
        }
        return found
    }

    /// The token finds it until it leaves.
    mutating func append(_ element: consuming Element, kin: Int?) -> SlotToken {
        let index: Int
        if firstFree == Self.none {
            index = slots.count
            slots.append(Slot(element: element))
        } else {
            index = Int(firstFree)
            firstFree = slots[index].next
            slots[index].element = element
        }
        if let kin {
            if chained == chains.count { addChains() }
            chained += 1
            Self.link(index, kin, in: &slots, &chains)
        }
        return SlotToken(index: UInt32(truncatingIfNeeded: index), stay: slots[index].stay)
    }

    /// What the token names leaves; `nil` if it has left.
    mutating func remove(_ token: SlotToken) -> Element? {
        let index = Int(token.index)
        // Moved out, not copied: an element may hold several references.
        guard index < slots.count, slots[index].stay == token.stay, let element = slots[index].element.take() else {
            return nil
        }
        if Self.free(index, before: firstFree, in: &slots, &chains) { chained -= 1 }
        firstFree = Int32(truncatingIfNeeded: index)
        return element
    }

    /// What the token names; `nil` if it has left.
    @inline(__always)
    subscript(token: SlotToken) -> Element? {
        let index = Int(token.index)
        return index < slots.count && slots[index].stay == token.stay ? slots[index].element : nil
    }

    /// Changes what the token names in place, unless it has left.
    @inline(__always)
    mutating func update(_ token: SlotToken, _ body: (inout Element) -> Void) {
        let index = Int(token.index)
        guard index < slots.count, slots[index].stay == token.stay, var element = slots[index].element.take() else {
            return
        }
        body(&element)
        slots[index].element = element
    }

    /// The number of what the token names; `nil` if it has none, or has left.
    func kin(of token: SlotToken) -> Int? {
        let index = Int(token.index)
        return index < slots.count && slots[index].stay == token.stay ? slots[index].kin : nil
    }

    // MARK: Chains

    // Static, given the arrays: so each is checked once for whether anybody else holds it. Through `self` every access
    // would be.

    @inline(__always)
    private static func link(_ index: Int, _ kin: Int, in slots: inout [Slot], _ chains: inout [Int32]) {
        let (place, chain) = (Int32(truncatingIfNeeded: index), kin & (chains.count - 1))
        let first = chains[chain]
        chains[chain] = place
        var slots = slots.mutableSpan
        slots[index].kin = kin
        slots[index].previous = none
        slots[index].next = first
        if first != none { slots[Int(first)].previous = place }
    }

    /// The slot holds no element any more.
    /// - Returns: whether it was in a chain.
    @inline(__always)
    private static func free(
        _ index: Int, before nextFree: Int32, in slots: inout [Slot], _ chains: inout [Int32]
    ) -> Bool {
        var slots = slots.mutableSpan
        let (kin, previous, next) = (slots[index].kin, slots[index].previous, slots[index].next)
        slots[index].stay &+= 1
        slots[index].next = nextFree
        guard let kin else { return false }
        slots[index].kin = nil
        if previous == none { chains[kin & (chains.count - 1)] = next } else { slots[Int(previous)].next = next }
        if next != none { slots[Int(next)].previous = previous }
        return true
    }

    private mutating func addChains() {
        chains = Array(repeating: Self.none, count: max(Self.fewestChains, chains.count * 2))
        for index in slots.indices {
            if let kin = slots[index].kin { Self.link(index, kin, in: &slots, &chains) }
        }
    }
}

extension KindredList: Sendable where Element: Sendable {}
extension KindredList.Slot: Sendable where Element: Sendable {}
