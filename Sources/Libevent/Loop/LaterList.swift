import Bytes

/// Work that one phase of the current iteration will do. On the loop's thread.
struct LaterList<Element>: ~Copyable {
    private let waiting = Exclusive<[Element]>([])

    var isEmpty: Bool { waiting.use { $0.isEmpty } }

    func add(_ element: Element) { waiting.use { $0.append(element) } }

    func removeAll() { waiting.use { $0.removeAll() } }

    /// Removes all elements and calls `body` with each of them, in order. An element that `body` adds waits for the
    /// next call.
    func forEachTaken(_ body: (Element) -> Void) {
        var due: [Element] = []
        waiting.use { swap(&due, &$0) }
        for element in due { body(element) }
        due.removeAll(keepingCapacity: true)
        // Reuse the array's storage.
        waiting.use { if $0.isEmpty { swap(&due, &$0) } }
    }
}
