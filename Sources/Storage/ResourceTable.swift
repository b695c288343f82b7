internal import Bytes

/// The index of one shard: an open-addressing table with linear probing, 16 bytes a place, at most three quarters full.
/// Two keys with one hash are told apart by all their bytes.
struct ResourceTable {
    private struct Place {
        var hash: UInt64
        var resource: CachedResource?
    }

    private static let smallestSize = 16

    private var places: [Place] = []
    private(set) var count = 0

    /// The resource under `key`. Allocates nothing.
    func resource(hash: UInt64, key: Span<UInt8>) -> CachedResource? {
        guard !places.isEmpty else { return nil }
        let mask = places.count &- 1
        var index = Int(truncatingIfNeeded: hash) & mask
        while let resource = places[index].resource {
            if places[index].hash == hash, resource.has(key: key) { return resource }
            index = (index &+ 1) & mask
        }
        return nil
    }

    /// The resource with `hash` for which `condition` holds.
    func resource(hash: UInt64, where condition: (CachedResource) -> Bool) -> CachedResource? {
        guard !places.isEmpty else { return nil }
        let mask = places.count &- 1
        var index = Int(truncatingIfNeeded: hash) & mask
        while let resource = places[index].resource {
            if places[index].hash == hash, condition(resource) { return resource }
            index = (index &+ 1) & mask
        }
        return nil
    }

    mutating func insert(_ resource: CachedResource) {
        if (count + 1) * 4 > places.count * 3 { grow() }
        place(resource)
        count += 1
    }

    /// Puts `new` where `old` is.
    mutating func replace(_ old: CachedResource, with new: CachedResource) {
        if let index = index(of: old) { places[index].resource = new }
    }

    mutating func remove(_ resource: CachedResource) {
        guard var hole = index(of: resource) else { return }
        count -= 1
        let mask = places.count - 1
        var index = (hole + 1) & mask
        // Whoever was pushed behind the hole moves up, so that probing needs no tombstones.
        while places[index].resource != nil {
            let home = Int(truncatingIfNeeded: places[index].hash) & mask
            if (index - home) & mask >= (index - hole) & mask {
                places[hole] = places[index]
                hole = index
            }
            index = (index + 1) & mask
        }
        places[hole].resource = nil
    }

    mutating func removeAll() {
        places = []
        count = 0
    }

    func forEach(_ body: (CachedResource) -> Void) {
        for place in places {
            if let resource = place.resource { body(resource) }
        }
    }

    private func index(of wanted: CachedResource) -> Int? {
        guard !places.isEmpty else { return nil }
        let mask = places.count - 1
        var index = Int(truncatingIfNeeded: wanted.hash) & mask
        while let resource = places[index].resource {
            if resource === wanted { return index }
            index = (index + 1) & mask
        }
        return nil
    }

    private mutating func place(_ resource: CachedResource) {
        let mask = places.count - 1
        var index = Int(truncatingIfNeeded: resource.hash) & mask
        while places[index].resource != nil { index = (index + 1) & mask }
        places[index] = Place(hash: resource.hash, resource: resource)
    }

    private mutating func grow() {
        let old = places
        places = Array(repeating: Place(hash: 0, resource: nil), count: max(Self.smallestSize, old.count * 2))
        for place in old {
            if let resource = place.resource { self.place(resource) }
        }
    }
}
