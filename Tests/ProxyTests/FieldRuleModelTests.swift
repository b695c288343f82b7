import Bytes
import HTTPSemantics
import LoopTesting
import Repeatable
import Storage
import Testing

@testable import Proxy
@testable import Routing

/// Random rules on random messages: the request that the origin gets, the head that is stored, and the head that clients
/// get are those of a model of a few lines.
@Suite(.timeLimit(.minutes(10))) struct FieldRuleModelTests {
    typealias Fields = [(name: String, value: String)]

    /// The model: one map after another, and in each `remove`, `set`, `add`.
    static func model(_ fields: Fields, _ maps: [FieldChanges], status: Int = 200) -> Fields {
        maps.reduce(fields) { fields, map in
            let gone = (map.remove + map.set.map(\.name)).map { $0.lowercased() }
            let lines = (map.set + map.add).map { line in
                (name: line.name, value: written(line.value, status: status))
            }
            return fields.filter { !gone.contains($0.name.lowercased()) } + lines
        }
    }

    private static func written(_ value: Template, status: Int) -> String {
        value.text.replacing("${path}", with: "/x").replacing("${host}", with: "a.example")
            .replacing("${client}", with: "192.0.2.1").replacing("${status}", with: "\(status)")
    }

    private static let names = ["X-A", "x-B", "X-Cc", "Server", "Content-Type", "Cache-Control", "X-Long-Name"]

    private static func changes(_ random: inout SeededGenerator, ofResponse: Bool) throws -> FieldChanges {
        var changes = FieldChanges()
        for name in names where name != "Cache-Control" || ofResponse {
            let name = Bool.random(using: &random) ? name.lowercased() : name
            let values = ["1", "two words", "${path}-${host}", "${client}", ofResponse ? "s${status}" : "s"]
            func line() throws -> FieldChanges.Line {
                FieldChanges.Line(name, try Template(values.randomElement(using: &random) ?? ""))
            }
            if Int.random(in: 0..<3, using: &random) == 0 { changes.set.append(try line()) }
            if Int.random(in: 0..<4, using: &random) == 0 { changes.add.append(try line()) }
            if Int.random(in: 0..<4, using: &random) == 0 { changes.remove.append(name.lowercased()) }
        }
        return changes
    }

    private static func fields(_ random: inout SeededGenerator) -> Fields {
        (0..<Int.random(in: 0..<8, using: &random)).map { number in
            let name = names.filter { $0 != "Cache-Control" }.randomElement(using: &random) ?? ""
            return (Bool.random(using: &random) ? name.uppercased() : name, "o\(number)")
        }
    }

    private static func text(_ fields: Fields) -> String {
        fields.map { "\($0.name): \($0.value)" }.joined(separator: "\r\n")
    }

    /// The values of each name of `names`, in their order.
    private static func values(_ fields: Fields) -> [String: [String]] {
        Dictionary(
            uniqueKeysWithValues: names.map { name in
                (name, fields.filter { $0.name.lowercased() == name.lowercased() }.map(\.value))
            })
    }

    private static func values(_ head: String) -> [String: [String]] {
        values(
            head.split(separator: "\r\n").compactMap { line in
                let parts = line.split(separator: ": ", maxSplits: 1)
                return parts.count == 2 ? (String(parts[0]), String(parts[1])) : nil
            })
    }

    /// `original` after a response with `update`, by name.
    private static func updated(_ original: Fields, with update: Fields) -> Fields {
        let names = Set(update.map { $0.name.lowercased() })
        return original.filter { !names.contains($0.name.lowercased()) } + update
    }

    @Test(arguments: Rounds.seeds(60))
    func `what is forwarded, stored and sent is what a plain model gives`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let requests = [
            try Self.changes(&random, ofResponse: false), try Self.changes(&random, ofResponse: false),
        ]
        let responses = [try Self.changes(&random, ofResponse: true), try Self.changes(&random, ofResponse: true)]
        let proxy = try TestProxy { settings in
            (settings.requestFields, settings.responseFields) = (requests[0], responses[0])
            var route = RouteSettings(upstream: "one")
            (route.requestFields, route.responseFields) = (requests[1], responses[1])
            settings.routes = [route]
        }
        let asked = Self.fields(&random)
        let line = "GET /x\n" + asked.map { "\($0.name): \($0.value)" }.joined(separator: "\n")
        let lifetime = (name: "Cache-Control", value: "max-age=60")
        let sent = Self.fields(&random) + [lifetime]

        // A miss, by one that leads and one that joins.
        let clients = try (0..<2).map { _ in try proxy.ask(line) }
        proxy.run { proxy.origin.requestCount == 1 }
        #expect(Self.values(proxy.origin.lastRequest) == Self.values(Self.model(asked, requests)))
        proxy.origin.answer("body", Self.text(sent + [("ETag", "\"a\""), ("Age", "30")]))
        proxy.run { clients.allSatisfy(\.hasEnded) }
        let expected = Self.values(Self.model(sent, responses))
        for client in clients { #expect(Self.values(client.head) == expected) }

        // The stored head has what is the same for all; but what this cache reads there stays the origin's.
        let stored = try #require(try self.stored(in: proxy))
        let variable = Set(
            responses.flatMap { $0.set + $0.add }.filter { !$0.value.isConstant }.map { $0.name.lowercased() })
        for name in Self.names where name != "Cache-Control" && !variable.contains(name.lowercased()) {
            #expect(Self.values(stored)[name] == expected[name], "\(name)")
        }
        #expect(Self.values(stored)["Cache-Control"] == ["max-age=60"])

        // A hit.
        let hit = try proxy.ask(line)
        #expect(Self.values(hit.head) == expected && proxy.origin.requestCount == 1)

        // A 304 of the origin.
        let update = Self.fields(&random) + [lifetime]
        let validating = try proxy.ask(line + "\nCache-Control: max-age=0")
        proxy.run { proxy.origin.requestCount == 2 }
        proxy.origin.answer(status: "304 Not Modified", Self.text(update + [("ETag", "\"a\"")]))
        proxy.run { validating.hasEnded }
        let confirmed = Self.values(Self.model(Self.updated(sent, with: update), responses))
        #expect(Self.values(validating.head) == confirmed)
        #expect(Self.values(try proxy.ask(line).head) == confirmed && proxy.origin.requestCount == 2)
    }

    private func stored(in proxy: TestProxy) throws -> String? {
        let request = try proxy.admit()
        let fields = request.fields
        return proxy.worker.context.resource(for: request)?.response(matching: fields.view).map {
            String($0.head.bytes)
        }
    }
}
