import Bytes
import HTTPSemantics
import Repeatable
import Testing

@testable import Storage

/// The index of a shard finds what is there and nothing else, however it has grown.
@Suite struct ResourceTableTests {
    /// How the lower halves of the keys' hashes lie, by which they have their places.
    enum Spread: CaseIterable, Sendable {
        case even
        /// Long runs here and there.
        case inHeaps
        /// One run, over the end of the table to its beginning.
        case atTheEnd

        func half(_ generator: inout SeededGenerator) -> UInt64 {
            switch self {
            case .even: generator.next() & 0xFFFF_FFFF
            case .inHeaps: (generator.next() & 7) << 29 | generator.next() & 0xFFFF
            case .atTheEnd: 0xFFFF_FF00 | generator.next() & 0xFF
            }
        }
    }

    /// The table, and what should be in it.
    private struct Model {
        var table = ResourceTable()
        private(set) var present: [CachedResource] = []
        private(set) var gone: [CacheKey] = []
        private var count = 0
        var generator: SeededGenerator
        let spread: Spread

        init(_ spread: Spread, seed: UInt64) {
            self.spread = spread
            generator = SeededGenerator(ofTest: seed)
        }

        private static func resource(_ key: CacheKey) -> CachedResource {
            CachedResource(CachedResource.Contents(), under: key, notesSlot: nil)
        }

        private static func key(_ resource: CachedResource) -> CacheKey {
            CacheKey(hash: resource.hash, bytes: resource.key)
        }

        mutating func insert() {
            count += 1
            let hash = generator.next() << 32 | spread.half(&generator)
            let new = Self.resource(CacheKey(hash: hash, bytes: ByteSlice("\(count)")))
            table.insert(new)
            present.append(new)
        }

        mutating func replaceAny() {
            guard let index = present.indices.randomElement(using: &generator) else { return }
            let new = Self.resource(Self.key(present[index]))
            table.replace(present[index], with: new)
            present[index] = new
        }

        mutating func removeAny() {
            guard let index = present.indices.randomElement(using: &generator) else { return }
            present.swapAt(index, present.count - 1)
            let old = present.removeLast()
            table.remove(old)
            gone.append(Self.key(old))
        }

        /// Whether each is found by its key and its hash, once in a walk, and nothing else is.
        func isRight(stride: Int) -> Bool {
            var (start, walked): (UInt32?, [CachedResource]) = (0, [])
            while let from = start { start = table.stretch(from: from, stride: stride, into: &walked) }
            var visited = 0
            table.forEach { _ in visited += 1 }
            return table.count == present.count && visited == present.count
                && Self.names(walked) == Self.names(present)
                && present.allSatisfy { resource in
                    table.resource(Self.key(resource)) == resource
                        && table.resource(hash: resource.hash) { $0 == resource } == resource
                }
                && gone.allSatisfy { table.resource($0) == nil }
        }

        private static func names(_ resources: [CachedResource]) -> [String] {
            resources.map { String($0.key.span) }.sorted()
        }
    }

    struct Row: Sendable {
        let spread: Spread
        let count: Int
        /// For each that is put in.
        let removals: Double
    }

    @Test(arguments: [
        Row(spread: .even, count: 4_000, removals: 0), Row(spread: .even, count: 4_000, removals: 0.5),
        Row(spread: .even, count: 2_000, removals: 0.9), Row(spread: .inHeaps, count: 1_500, removals: 0.5),
        Row(spread: .atTheEnd, count: 600, removals: 0), Row(spread: .atTheEnd, count: 600, removals: 0.5),
    ])
    func `every entry is found after any insertions and removals`(_ row: Row) {
        var model = Model(row.spread, seed: UInt64(row.count))
        var checks = 0
        for step in 1...row.count {
            model.insert()
            if Double.random(in: 0..<1, using: &model.generator) < row.removals { model.removeAny() }
            model.replaceAny()
            guard step % 50 == 0 else { continue }
            checks += 1
            #expect(model.isRight(stride: [1, 7, 512][checks % 3]), "after \(step)")
        }
        while !model.present.isEmpty { model.removeAny() }
        #expect(model.isRight(stride: 512))
    }
}
