/// Names one stay in a `SlotList`.
@usableFromInline
package struct SlotToken: Hashable, Sendable {
    /// The index of the slot.
    @usableFromInline package let index: UInt32
    /// Distinguishes the elements that have had this slot.
    @usableFromInline package let stay: UInt32

    /// The token that finds no element in any list.
    @inlinable package static var none: SlotToken { SlotToken(index: .max, stay: 0) }

    /// Stands for the callers of an audience that have no element (`Audience.home`).
    @inlinable static var home: SlotToken { SlotToken(index: .max, stay: 1) }

    /// Makes the token of a stay, as a list returns it.
    @inlinable
    package init(index: UInt32, stay: UInt32) {
        self.index = index
        self.stay = stay
    }
}

/// A list in order of arrival whose members can leave from the middle in constant time: a doubly linked list inside an
/// array.
///
/// A token names one stay. Once its element has left, the token finds no element, even if the slot was taken again.
@usableFromInline
package struct SlotList<Element> {
    @usableFromInline
    struct Slot {
        @usableFromInline var element: Element?
        @usableFromInline var stay: UInt32 = 0
        @usableFromInline var previous: Int32
        /// The next slot in order; for a free slot, the next free slot.
        @usableFromInline var next: Int32

        @inlinable
        init(element: Element?, previous: Int32, next: Int32) {
            self.element = element
            self.previous = previous
            self.next = next
        }
    }

    /// The index that ends a list.
    @inlinable static var none: Int32 { -1 }

    @usableFromInline var slots: [Slot] = []
    @usableFromInline var first: Int32 = -1
    @usableFromInline var last: Int32 = -1
    @usableFromInline var firstFree: Int32 = -1
    @usableFromInline var count = 0

    /// An empty list.
    @inlinable
    package init() {}

    @inlinable var isEmpty: Bool { count == 0 }

    /// Appends `element`. The token finds it until it leaves.
    @inlinable
    package mutating func append(_ element: consuming Element) -> SlotToken {
        let index: Int32
        if firstFree == Self.none {
            index = Int32(truncatingIfNeeded: slots.count)
            slots.append(Slot(element: element, previous: last, next: Self.none))
        } else {
            index = firstFree
            firstFree = slots[Int(index)].next
            slots[Int(index)].element = element
            slots[Int(index)].previous = last
            slots[Int(index)].next = Self.none
        }
        if last == Self.none { first = index } else { slots[Int(last)].next = index }
        last = index
        count += 1
        return SlotToken(index: UInt32(truncatingIfNeeded: index), stay: slots[Int(index)].stay)
    }

    /// Removes the element that the token names; `nil` if it has left.
    @inlinable
    package mutating func remove(_ token: SlotToken) -> Element? {
        let index = Int(token.index)
        // Moved out, not copied: an element may hold several references.
        guard index < slots.count, slots[index].stay == token.stay, let element = slots[index].element.take() else {
            return nil
        }
        vacate(index)
        return element
    }

    /// Changes the element that the token names in place. False if it has left. `body` must not leave `nil`.
    @discardableResult
    @inlinable
    mutating func update(_ token: SlotToken, _ body: (inout Element?) -> Void) -> Bool {
        let index = Int(token.index)
        guard index < slots.count, slots[index].stay == token.stay, slots[index].element != nil else { return false }
        body(&slots[index].element)
        return true
    }

    /// Takes a slot that holds no element any more out of the list.
    @inlinable
    mutating func vacate(_ index: Int) {
        let (previous, next) = (slots[index].previous, slots[index].next)
        if previous == Self.none { first = next } else { slots[Int(previous)].next = next }
        if next == Self.none { last = previous } else { slots[Int(next)].previous = previous }
        slots[index].stay &+= 1
        slots[index].next = firstFree
        firstFree = Int32(truncatingIfNeeded: index)
        count -= 1
    }

    /// The element that the token names; `nil` if it has left.
    @inlinable
    subscript(token: SlotToken) -> Element? {
        let index = Int(token.index)
        return index < slots.count && slots[index].stay == token.stay ? slots[index].element : nil
    }

    /// The token of the first element for which `isMeant` is true.
    @inlinable
    func token(where isMeant: (Element) -> Bool) -> SlotToken? {
        var index = first
        while index != Self.none {
            if let element = slots[Int(index)].element, isMeant(element) {
                return SlotToken(index: UInt32(truncatingIfNeeded: index), stay: slots[Int(index)].stay)
            }
            index = slots[Int(index)].next
        }
        return nil
    }

    /// All elements, in no order.
    package var elements: [Element] { slots.compactMap(\.element) }

    /// The element that has been in the list longest, and its token.
    @inlinable
    var front: (token: SlotToken, element: Element)? {
        guard first != Self.none, let element = slots[Int(first)].element else { return nil }
        return (SlotToken(index: UInt32(truncatingIfNeeded: first), stay: slots[Int(first)].stay), element)
    }

    /// Visits every element in order, in place. An element that `body` sets to `nil` leaves.
    @inlinable
    mutating func update(_ body: (inout Element?) -> Void) {
        var index = first
        while index != Self.none {
            let next = slots[Int(index)].next
            body(&slots[Int(index)].element)
            if slots[Int(index)].element == nil { vacate(Int(index)) }
            index = next
        }
    }
}

extension SlotList: Sendable where Element: Sendable {}
extension SlotList.Slot: Sendable where Element: Sendable {}
