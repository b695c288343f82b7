import Bytes
import Testing

@testable import Redis

/// What the answers to `CLUSTER SLOTS` mean.
struct SlotTableTests {
    private static func table(_ answer: String) throws -> SlotTable? {
        var parser = RESPParser()
        let input = ByteBuffer(capacity: 64)
        input.append(string: answer)
        guard let value = try parser.next(in: input) else { return nil }
        return SlotTable(value, from: ByteSlice("10.0.0.9"))
    }

    private static func range(_ first: Int, _ last: Int, _ host: String, _ port: Int) -> String {
        "*3\r\n:\(first)\r\n:\(last)\r\n*4\r\n\(host):\(port)\r\n$2\r\nid\r\n*0\r\n"
    }

    private static func name(_ table: SlotTable?, _ number: Int64) -> String? {
        ClusterSlot(number).flatMap { table?[$0] }.map { String($0) }
    }

    @Test func `each slot has the node of its range, or none`() throws {
        var table = try Self.table(
            "*3\r\n" + Self.range(0, 99, "$8\r\n10.0.0.1\r\n", 1) + Self.range(200, 16383, "$1\r\nb\r\n", 2)
                + Self.range(150, 150, "$8\r\n10.0.0.1\r\n", 1))
        #expect(table?.nodes.map { String($0) } == ["10.0.0.1:1", "b:2"])
        let found = [0, 99, 100, 150, 151, 199, 200, 16383].map { Self.name(table, $0) }
        #expect(found == ["10.0.0.1:1", "10.0.0.1:1", nil, "10.0.0.1:1", nil, nil, "b:2", "b:2"])
        if let slot = ClusterSlot(99) { table?.move(slot, to: ByteSlice("c:3")) }
        #expect(Self.name(table, 99) == "c:3" && Self.name(table, 98) == "10.0.0.1:1" && table?.nodes.count == 3)
    }

    @Test(arguments: ["_\r\n", "$0\r\n\r\n"]) func `a node that does not know its address has the one it was asked at`(
        host: String
    ) throws {
        #expect(Self.name(try Self.table("*1\r\n" + Self.range(0, 1, host, 7)), 1) == "10.0.0.9:7")
    }

    @Test(arguments: [
        "*0\r\n", "+OK\r\n", "*1\r\n:1\r\n", "*1\r\n*2\r\n:0\r\n:1\r\n", "*1\r\n" + range(5, 4, "_\r\n", 1),
        "*1\r\n" + range(-1, 4, "_\r\n", 1), "*1\r\n" + range(0, 16384, "_\r\n", 1), "*1\r\n" + range(0, 1, "_\r\n", 0),
        "*1\r\n" + range(0, 1, "_\r\n", 65536), "*1\r\n*3\r\n:0\r\n:1\r\n*1\r\n_\r\n",
    ]) func `any other answer is no table`(answer: String) throws {
        #expect(try Self.table(answer) == nil)
    }

    @Test func `an empty table knows no slot, and learns`() {
        var table = SlotTable()
        #expect(Self.name(table, 5) == nil)
        if let slot = ClusterSlot(5) { table.move(slot, to: ByteSlice("a:1")) }
        #expect(Self.name(table, 5) == "a:1" && Self.name(table, 6) == nil)
    }
}
