/// Elements that come and leave in constant time, and are found by their group, a number. Each element has one group or
/// none.
///
/// A `SlotList` whose elements are also in chains, one for each value of the group's lower bits. The number of chains
/// doubles when they get long. So the group should be a hash.
struct GroupedList<Element> {
    fileprivate struct Place {
        var element: Element
        let group: Int?
        /// The indices of the neighbours in the chain.
        var beside = (previous: SlotList<Element>.none, next: SlotList<Element>.none)

        mutating func change(_ body: (inout Element) -> Void) { body(&element) }
    }

    private static var none: Int32 { SlotList<Element>.none }

    private var places = SlotList<Place>()
    /// The first index of each chain. Empty until an element with a group comes.
    private var chains: [Int32] = []
    /// The number of elements that are in a chain.
    private var chained = 0

    /// All elements.
    var elements: [Element] { places.elements.map(\.element) }

    /// The elements of this group. Visits no others but the few whose groups have the same lower bits.
    func elements(inGroup group: Int) -> [Element] {
        guard !chains.isEmpty else { return [] }
        var found: [Element] = []
        var index = chains[group & (chains.count - 1)]
        while index != Self.none, let place = places.slots[Int(index)].element {
            if place.group == group { found.append(place.element) }
            index = place.beside.next
        }
        return found
    }

    /// Adds an element. The token finds it until it leaves.
    mutating func append(_ element: consuming Element, group: Int?) -> SlotToken {
        if group != nil, chained == chains.count { addChains() }
        let token = places.append(Place(element: element, group: group))
        if let group {
            chained += 1
            link(Int(token.index), group)
        }
        return token
    }

    /// Removes the element that the token names; `nil` if it has left.
    mutating func remove(_ token: SlotToken) -> Element? {
        guard let place = places.remove(token) else { return nil }
        if let group = place.group {
            chained -= 1
            let (previous, next) = place.beside
            if previous == Self.none {
                chains[group & (chains.count - 1)] = next
            } else {
                places.slots[Int(previous)].element?.beside.next = next
            }
            if next != Self.none { places.slots[Int(next)].element?.beside.previous = previous }
        }
        return place.element
    }

    /// The element that the token names; `nil` if it has left.
    subscript(token: SlotToken) -> Element? { places[token]?.element }

    /// Changes the element that the token names in place, unless it has left.
    mutating func update(_ token: SlotToken, _ body: (inout Element) -> Void) {
        places.update(token) { $0?.change(body) }
    }

    /// The group of the element that the token names; `nil` if it has no group, or has left.
    func group(of token: SlotToken) -> Int? { places[token]?.group }

    private mutating func link(_ index: Int, _ group: Int) {
        let place = Int32(truncatingIfNeeded: index)
        let chain = group & (chains.count - 1)
        let first = chains[chain]
        chains[chain] = place
        places.slots[index].element?.beside = (Self.none, first)
        if first != Self.none { places.slots[Int(first)].element?.beside.previous = place }
    }

    private mutating func addChains() {
        chains = Array(repeating: Self.none, count: max(16, chains.count * 2))
        for index in places.slots.indices {
            if let group = places.slots[index].element?.group { link(index, group) }
        }
    }
}

extension GroupedList: Sendable where Element: Sendable {}
extension GroupedList.Place: Sendable where Element: Sendable {}
