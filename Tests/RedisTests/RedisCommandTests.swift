import Bytes
import Testing

@testable import Redis

/// What the engine gets.
struct RedisCommandTests {
    private static func bytes(_ command: RedisCommand) -> String {
        let output = ByteBuffer(capacity: 16)
        command.write(to: output)
        #expect(output.count <= command.size)
        return String(output.copied())
    }

    @Test func `a command is an array of texts`() {
        #expect(Self.bytes(RedisCommand("PING")) == "*1\r\n$4\r\nPING\r\n")
        let command = RedisCommand("FCALL", size: 0)
        command.add("co1_look")
        command.add(2)
        command.add(key: ByteSlice("co:{h}:m"))
        command.add(key: ByteSlice("co:{h}:l"))
        command.add(ByteSlice("a\r\nb"))
        command.add(ByteSlice.empty)
        let expected =
            "*7\r\n$5\r\nFCALL\r\n$8\r\nco1_look\r\n$1\r\n2\r\n$8\r\nco:{h}:m\r\n$8\r\nco:{h}:l\r\n$4\r\na\r\nb\r\n$0\r\n\r\n"
        #expect(Self.bytes(command) == expected)
        #expect(command.count == 7)
    }

    @Test func `a command can be sent twice`() {
        let command = RedisCommand("PING")
        #expect(Self.bytes(command) == Self.bytes(command))
    }

    @Test(arguments: [0, 9, 10, 99, 100, -1, -10, 1_234_567, .max, .min]) func `numbers are decimal`(number: Int) {
        let command = RedisCommand("X")
        command.add(number)
        let text = "\(number)"
        #expect(Self.bytes(command) == "*2\r\n$1\r\nX\r\n$\(text.utf8.count)\r\n\(text)\r\n")
    }

    @Test func `an engine's parser reads what was written`() throws {
        let command = RedisCommand("SET")
        command.add(key: ByteSlice("k"))
        command.add(Int.min)
        let output = ByteBuffer(capacity: 16)
        command.write(to: output)
        var parser = RESPParser()
        let value = try parser.next(in: output)
        #expect(value.map { "\($0)" } == "[\"SET\" \"k\" \"-9223372036854775808\"]")
    }

    /// Asked of redis-server 7.0.15 by `CLUSTER KEYSLOT`.
    @Test(arguments: [
        ("123456789", 12739), ("foo", 12182), ("", 0), ("{user1000}.following", 3443), ("{user1000}.followers", 3443),
        ("foo{}{bar}", 8363), ("foo{{bar}}zap", 4015), ("foo{bar}{zap}", 5061), ("bar", 5061), ("{", 4092),
        ("co:{abc}:m", 7638), ("abc", 7638),
    ])
    func `keys have the slots that a cluster gives them`(key: String, slot: UInt16) {
        let bytes = ByteSlice(key)
        #expect(ClusterSlot(of: bytes.span).number == slot)
    }

    @Test func `the first key decides`() {
        let command = RedisCommand("EVAL")
        #expect(command.slot == nil)
        command.add("return 1")
        #expect(command.slot == nil)
        command.add(key: ByteSlice("foo"))
        command.add(key: ByteSlice("bar"))
        #expect(command.slot?.number == 12182)
    }
}
