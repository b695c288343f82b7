/// A list whose first element is stored in the list itself. A list of one element, as most are, allocates no memory.
public struct ShortList<Element>: RandomAccessCollection, MutableCollection {
    @usableFromInline var head: Element?
    /// Empty if there is no `head`.
    @usableFromInline var rest: [Element]

    /// The elements of `elements`, in their order.
    @inlinable
    public init(_ elements: [Element]) {
        head = elements.first
        rest = elements.count > 1 ? Array(elements.dropFirst()) : []
    }

    /// A list of one.
    @inlinable
    public init(one element: Element) {
        head = element
        rest = []
    }

    /// An empty list.
    @inlinable
    public init() {
        head = nil
        rest = []
    }

    /// 0, the index of the first element.
    @inlinable public var startIndex: Int { 0 }
    /// The number of elements.
    @inlinable public var endIndex: Int { head == nil ? 0 : 1 &+ rest.count }

    /// The element at `index`, which must be less than `count`.
    @inlinable
    public subscript(index: Int) -> Element {
        get {
            if index > 0 { return rest[index &- 1] }
            guard index == 0, let head else { preconditionFailure("an element outside its list") }
            return head
        }
        set {
            if index > 0 { return rest[index &- 1] = newValue }
            precondition(index == 0 && head != nil, "an element outside its list")
            head = newValue
        }
    }

    /// Changes the element at `index` in place.
    @inlinable @inline(__always)
    public mutating func update(_ index: Int, _ change: (inout Element) -> Void) {
        if index > 0 { return change(&rest[index &- 1]) }
        // The element is moved out and back, not copied.
        guard index == 0, var element = head.take() else { preconditionFailure("an element outside its list") }
        change(&element)
        head = consume element
    }

    /// Adds `element` after the others.
    @inlinable
    public mutating func append(_ element: Element) {
        if head == nil { head = element } else { rest.append(element) }
    }

    /// Removes the first `count` elements.
    @inlinable
    public mutating func removeFirst(_ count: Int) {
        guard count > 0 else { return }
        precondition(count <= self.count, "more elements taken out than there are")
        head = count <= rest.count ? rest[count &- 1] : nil
        rest.removeFirst(Swift.min(count, rest.count))
    }

    /// Removes all elements after the first `count`.
    @inlinable
    public mutating func truncate(to count: Int) {
        guard count < self.count else { return }
        if count == 0 { head = nil }
        rest.removeLast(rest.count &- Swift.max(0, count &- 1))
    }
}

extension ShortList: Sendable where Element: Sendable {}
