/// Elements that come and leave in constant time, and are found by their group, a number. Each element has one group or
/// none. The elements have no order.
///
/// A list inside an array, like `SlotList`, but with one chain for each value of the group's lower bits, instead of one
/// chain in order of arrival. The number of chains doubles when they get long. So the group should be a hash.
struct GroupedList<Element> {
    struct Slot {
        var element: Element?
        var stay: UInt32 = 0
        /// The previous slot in its chain.
        var previous = GroupedList.none
        /// The next slot in its chain; for a free slot, the next free slot.
        var next = GroupedList.none
        var group: Int?
    }

    static var none: Int32 { -1 }
    private static var fewestChains: Int { 16 }

    private var slots: [Slot] = []
    private var firstFree = GroupedList.none
    /// The first slot of each chain. Empty until an element with a group comes.
    private var chains: [Int32] = []
    /// The number of elements that are in a chain.
    private var chained = 0

    /// All elements.
    var elements: [Element] { slots.compactMap(\.element) }

    /// The elements of this group. Visits no others but the few whose groups have the same lower bits.
    func elements(inGroup group: Int) -> [Element] {
        guard !chains.isEmpty else { return [] }
        var found: [Element] = []
        var index = chains[group & (chains.count - 1)]
        while index != Self.none {
            let slot = slots[Int(index)]
            if slot.group == group, let element = slot.element { found.append(element) }
            index = slot.next
        }
        return found
    }

    /// Adds an element. The token finds it until it leaves.
    mutating func append(_ element: consuming Element, group: Int?) -> SlotToken {
        let index: Int
        if firstFree == Self.none {
            index = slots.count
            slots.append(Slot(element: element))
        } else {
            index = Int(firstFree)
            firstFree = slots[index].next
            slots[index].element = element
        }
        if let group {
            if chained == chains.count { addChains() }
            chained += 1
            Self.link(index, group, in: &slots, &chains)
        }
        return SlotToken(index: UInt32(truncatingIfNeeded: index), stay: slots[index].stay)
    }

    /// Removes the element that the token names; `nil` if it has left.
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

    /// The element that the token names; `nil` if it has left.
    @inline(__always)
    subscript(token: SlotToken) -> Element? {
        let index = Int(token.index)
        return index < slots.count && slots[index].stay == token.stay ? slots[index].element : nil
    }

    /// Changes the element that the token names in place, unless it has left.
    @inline(__always)
    mutating func update(_ token: SlotToken, _ body: (inout Element) -> Void) {
        let index = Int(token.index)
        guard index < slots.count, slots[index].stay == token.stay, var element = slots[index].element.take() else {
            return
        }
        body(&element)
        slots[index].element = element
    }

    /// The group of the element that the token names; `nil` if it has no group, or has left.
    func group(of token: SlotToken) -> Int? {
        let index = Int(token.index)
        return index < slots.count && slots[index].stay == token.stay ? slots[index].group : nil
    }

    // MARK: Chains

    // Static functions that take the arrays, so that each array is checked once for unique ownership. Through `self`,
    // every access would be checked.

    @inline(__always)
    private static func link(_ index: Int, _ group: Int, in slots: inout [Slot], _ chains: inout [Int32]) {
        let (place, chain) = (Int32(truncatingIfNeeded: index), group & (chains.count - 1))
        let first = chains[chain]
        chains[chain] = place
        var slots = slots.mutableSpan
        slots[index].group = group
        slots[index].previous = none
        slots[index].next = first
        if first != none { slots[Int(first)].previous = place }
    }

    /// Frees the slot, which holds no element any more.
    /// - Returns: whether the slot was in a chain.
    @inline(__always)
    private static func free(
        _ index: Int, before nextFree: Int32, in slots: inout [Slot], _ chains: inout [Int32]
    ) -> Bool {
        var slots = slots.mutableSpan
        let (group, previous, next) = (slots[index].group, slots[index].previous, slots[index].next)
        slots[index].stay &+= 1
        slots[index].next = nextFree
        guard let group else { return false }
        slots[index].group = nil
        if previous == none { chains[group & (chains.count - 1)] = next } else { slots[Int(previous)].next = next }
        if next != none { slots[Int(next)].previous = previous }
        return true
    }

    private mutating func addChains() {
        chains = Array(repeating: Self.none, count: max(Self.fewestChains, chains.count * 2))
        for index in slots.indices {
            if let group = slots[index].group { Self.link(index, group, in: &slots, &chains) }
        }
    }
}

extension GroupedList: Sendable where Element: Sendable {}
extension GroupedList.Slot: Sendable where Element: Sendable {}
