public import Bytes
import RawStructuredFieldValues

/// The differences between queries that a response declares irrelevant (draft-ietf-httpbis-no-vary-search).
///
/// The draft's algorithm in 'Parse a URL variation config' drops a field that has neither `params` nor `except`, while
/// its introduction and examples give `key-order` by itself a meaning. This type follows the prose: `key-order` applies
/// alone.
public struct NoVarySearch: Sendable, Hashable {
    /// The set of parameters that matter.
    public enum Parameters: Sendable, Hashable {
        /// Sorted, without duplicates.
        case allBut([QueryParameterName])
        case only([QueryParameterName])
    }

    /// The parameters whose values matter.
    public let parameters: Parameters
    /// Whether the order of different parameters matters.
    public let orderMatters: Bool

    /// The config under which queries are compared byte by byte.
    public static let `default` = NoVarySearch(parameters: .allBut([]), orderMatters: true)

    init(parameters: Parameters, orderMatters: Bool) {
        self.parameters = parameters
        self.orderMatters = orderMatters
    }

    /// Whether this is the default, so that a query is its own canonical form.
    public var isDefault: Bool { self == .default }

    /// Reads the field of a response. An invalid or contradictory field results in the default: fewer hits, no wrong
    /// ones.
    public init(_ fields: FieldView) {
        self = .default
        guard fields.contains(.noVarySearch),
            let dictionary = StructuredFields.dictionary(fields, named: Array("no-vary-search".utf8).span)
        else { return }
        var orderMatters = true
        if let value = dictionary["key-order"] {
            guard case .item(let item) = value, case .bool(let ignoresOrder) = item.rfc9651BareItem else { return }
            orderMatters = !ignoresOrder
        }
        switch (dictionary["params"], dictionary["except"]) {
        case (nil, nil):
            self.init(parameters: .allBut([]), orderMatters: orderMatters)
        case (let params?, nil):
            guard let names = Self.names(params) else { return }
            self.init(parameters: .allBut(names), orderMatters: orderMatters)
        case (nil, let except?):
            guard let names = Self.names(except) else { return }
            self.init(parameters: .only(names), orderMatters: orderMatters)
        case (_?, _?):
            return
        }
    }

    private static func names(_ value: ItemOrInnerList) -> [QueryParameterName]? {
        guard case .innerList(let list) = value else { return nil }
        let parameters = QueryParameters()
        var names: Set<QueryParameterName> = []
        for item in list.bareInnerList {
            guard case .string(let text) = item.rfc9651BareItem else { return nil }
            names.insert(parameters.name(Array(text.utf8).span))
        }
        return names.sorted()
    }

    /// Approximate size in memory, in bytes.
    public var size: Int {
        let names =
            switch parameters {
            case .allBut(let names), .only(let names): names
            }
        return names.reduce(64) { $0 + $1.bytes.count + 48 }
    }

    /// Appends a text for the key that is equal for two queries exactly if they are equivalent under this config. Not
    /// for the default config, in which a query is its own canonical form. A query with more than
    /// `KeyPolicy.mostParameters` parameters is appended unchanged, after a `&`. Allocates only for characters beyond
    /// ASCII.
    /// - Parameters:
    ///   - query: the query without the `?`; empty if there is none.
    ///   - memory: working memory for the parsed query.
    public func append(canonical query: Span<UInt8>, to buffer: ByteBuffer, using memory: QueryParameters) {
        guard memory.read(query) else {
            // No other text begins with `&`.
            buffer.append("&")
            return buffer.append(query)
        }
        switch parameters {
        case .allBut(let names): memory.keep(named: names, false)
        case .only(let names): memory.keep(named: names, true)
        }
        if !orderMatters { memory.sort() }
        memory.write(to: buffer)
    }

    /// The canonical text of `query`; `nil` means no query.
    public func canonicalQuery(_ query: ByteSlice?) -> ByteSlice {
        let query = query ?? ByteSlice("")
        if isDefault { return query }
        let buffer = ByteBuffer(capacity: 64)
        append(canonical: query.span, to: buffer, using: QueryParameters())
        return buffer.copied()
    }

    /// 'Comparing' of the draft, for two URIs that are equal except for the query.
    public func areEquivalent(_ left: ByteSlice?, _ right: ByteSlice?) -> Bool {
        if isDefault { return left == right }
        return canonicalQuery(left) == canonicalQuery(right)
    }
}
