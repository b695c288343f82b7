import HTTPSemantics
import Routing
import Testing

@testable import Proxy

/// Which requests find the same fetch, once it is known that responses go only to those alike.
@Suite struct FetchKeyTests {
    private static func keys(_ one: String, _ other: String, knowing known: World.Known?) throws -> [FetchKey] {
        let world = World([])
        return try [one, other].map { fields in
            let request = try world.request("GET /x\n" + fields)
            if let known { try world.learn(known, of: request) }
            return try world.plan(for: request).key
        }
    }

    @Test(arguments: [
        "X-HgArg-1: a|X-HgArg-1: b", "X-Api-Key: a|X-Api-Key: b", "X-Requested-With: a|DNT: 1", "Accept: a|Accept: b",
        "Cookie: a=1|Cookie: a=2",
    ])
    func `requests that do not match have different keys once that is known, and one key before`(_ pair: String) throws
    {
        let fields = pair.split(separator: "|").map(String.init)
        let known = try Self.keys(fields[0], fields[1], knowing: .marker(.unlike))
        #expect(known[0] != known[1])
        let unknown = try Self.keys(fields[0], fields[1], knowing: nil)
        #expect(unknown[0] == unknown[1])
    }

    @Test(arguments: ["User-Agent: a|User-Agent: b", "X-A: 1\nSec-GPC: 1|X-A: 1", "X-Request-ID: a|X-Request-ID: b"])
    func `requests that match have one key`(_ pair: String) throws {
        let fields = pair.split(separator: "|").map(String.init)
        let keys = try Self.keys(fields[0], fields[1], knowing: .marker(.unlike))
        #expect(keys[0] == keys[1])
    }

    @Test func `a stored response without lifetime separates personalized requests from the beginning`() throws {
        let stored = World.Known.response("Cache-Control: max-age=0\nETag: \"a\"")
        let peculiar = try Self.keys("X-Api-Key: a", "X-Api-Key: b", knowing: stored)
        #expect(peculiar[0] != peculiar[1])
        let usual = try Self.keys("Accept: a", "Accept: b", knowing: stored)
        #expect(usual[0] == usual[1])
        let lasting = try Self.keys("X-Api-Key: a", "X-Api-Key: b", knowing: .response("Cache-Control: max-age=5"))
        #expect(lasting[0] == lasting[1])
    }
}
