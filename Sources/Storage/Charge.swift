/// Bytes of the store's own structures, as measured with glibc on 64-bit Linux. They count against the
/// budget, so that a cache of a million tiny responses stays below the ceiling too.
enum Charge {
    /// A response: its object, its body's object and lists, the heads' allocations, its node in the eviction queues and
    /// its share of the ghost queue.
    static let response = 640
    /// A packed response, without its block.
    static let packed = 240
    /// The place in the index of a resource that is one packed response.
    static let place = 24
    /// The `Extras` of a response: the object and the bytes of its variant key.
    static let extras = 160
    /// The `ResponseTags` of a response and their list; `tag` is the charge of each tag in it.
    static let tags = 88
    static let tag = 8
    /// A tag that any stored response has: its object, its name's object and its places in the table.
    static let distinctTag = 272
    /// A resource: its snapshot, its key's allocation and its place in the index.
    static let resource = 208
    /// Each response after the first of its resource: its place in the list, and in the index if there are many.
    static let variant = 24
    /// A body that lends its bytes to a stored body.
    static let lender = 400
    /// A `VaryRule`; `nominee` is the charge of each name in it.
    static let rule = 48
    static let nominee = 80
    /// The list of a key's markers; `marker` is the charge of each marker in it.
    static let markers = 40
    static let marker = 24
}
