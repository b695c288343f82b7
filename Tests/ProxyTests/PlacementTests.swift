import Bytes
import HTTPSemantics
import RouteTesting
import Routing
import Storage
import Testing

@testable import Proxy

/// Under which key a response with `No-Vary-Search` belongs, by what is known of its path and what it says itself.
@Suite struct PlacementTests {
    struct Row: Sendable, CustomTestStringConvertible {
        let testDescription: String
        /// Whether the request was looked up under the variation by which `b` is irrelevant.
        let isUnderVariation: Bool
        let fields: String
        let willBeStored: Bool
        let key: String

        init(_ fields: String, underVariation: Bool, willBeStored: Bool = true, _ key: String) {
            isUnderVariation = underVariation
            (self.fields, self.willBeStored, self.key) = (fields, willBeStored, key)
            testDescription = "\(fields), under variation: \(underVariation), stored: \(willBeStored) → \(key)"
        }
    }

    private static let ignoresB = "No-Vary-Search: params=(\"b\")"
    private static let ignoresC = "No-Vary-Search: params=(\"c\")"

    static let rows: [Row] = [
        Row("", underVariation: false, "its own"),
        Row(ignoresB, underVariation: false, "another: a=1&"),
        Row(ignoresB, underVariation: true, "its own"),
        // It says something else than the one before, or no longer anything.
        Row(ignoresC, underVariation: true, "another: a=1&b=2&"),
        Row("", underVariation: true, "as sent"),
        // Only what will be stored teaches.
        Row(ignoresC, underVariation: true, willBeStored: false, "as sent"),
        Row(ignoresB, underVariation: true, willBeStored: false, "its own"),
        Row(ignoresC, underVariation: false, willBeStored: false, "its own"),
    ]

    @Test(arguments: rows) func `a response is stored under the key that its own variation gives`(_ row: Row) throws {
        let world = World([])
        let request = try Self.request(in: world, underVariation: row.isUnderVariation)
        var placement = Placement()
        let head = block(row.fields)
        placement.chooseStoreKey(
            by: head.view, for: request, willBeStored: row.willBeStored, in: world.shared.variations, world.keys)
        let found =
            switch placement.otherKey {
            case nil: "its own"
            case request.sentKey: "as sent"
            case let key?: "another: \(String(key.bytes).split(separator: " ").last ?? "")"
            }
        #expect(found == row.key)
    }

    private static func request(in world: World, underVariation: Bool) throws -> ClientRequest {
        let request = try world.request("GET /x?a=1&b=2")
        guard underVariation else { return request }
        let (sent, head) = (request.sentKey.bytes, block(ignoresB))
        let variation = world.shared.variations.learn(Placement.stated(head.view), for: sent.span)
        let known = try #require(variation)
        return request.under(world.keys.key(request.sentKey, under: known), known)
    }
}
