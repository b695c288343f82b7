import HTTPSemantics

/// Changes of stored responses by purges that do not drop whole keys.
extension Shard {
    /// The change of one variant.
    private enum Change {
        case none
        case replacement(StoredResponse)
        case removal
    }

    /// Drops the responses of `key` that purges of their tags have removed, and replaces those whose facts they change.
    /// The notes of the key stay.
    mutating func settle(_ key: CacheKey) {
        change(key) { response in
            switch response.tags?.standing(of: response.facts) {
            case nil, .unchanged: .none
            case .changed(let facts): .replacement(response.with(facts: facts))
            case .removed: .removal
            }
        }
        giveBackLists()
    }

    /// Makes all fresh responses of `key` stale.
    /// - Returns: the number of responses of `key`.
    mutating func soften(_ key: CacheKey, by softening: Softening) -> Int {
        change(key) { response in
            var facts = response.facts
            return facts.soften(by: softening) ? .replacement(response.with(facts: facts)) : .none
        }
    }

    /// - Returns: the number of variants before the change.
    @discardableResult
    private mutating func change(_ key: CacheKey, _ body: (StoredResponse) -> Change) -> Int {
        guard let old = table.resource(key) else { return 0 }
        var new = old.contents
        let isChanged = (change(&new.variants, under: key, body), change(&new.partials, under: key, body))
        if isChanged.0 || isChanged.1 { put(new, over: old, under: key) }
        return old.allVariants.count
    }

    private mutating func change(
        _ list: inout [CachedResource.Variant], under key: CacheKey, _ body: (StoredResponse) -> Change
    ) -> Bool {
        var isChanged = false
        for index in list.indices.reversed() {
            switch body(list[index].response) {
            case .none: continue
            case .replacement(let response): list[index] = replace(list[index], with: response, under: key)
            case .removal: discard(list.remove(at: index))
            }
            isChanged = true
        }
        return isChanged
    }
}
