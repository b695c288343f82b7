package import Bytes

/// One command for the engine, argument by argument. A value: the connection writes it.
package struct TierCommand: Hashable, Sendable {
    /// One argument.
    package enum Argument: Hashable, Sendable {
        case word(StaticWord)
        case bytes(ByteSlice)
        case number(Int)
        /// The name of a key, by which a cluster finds the node.
        case key(ByteSlice)
    }

    /// A literal.
    package struct StaticWord: Hashable, Sendable {
        package let text: StaticString

        package static func == (left: StaticWord, right: StaticWord) -> Bool {
            left.text.bytes.isEqual(to: right.text)
        }
        package func hash(into hasher: inout Hasher) { hasher.combine(text.utf8CodeUnitCount) }
    }

    /// The name of the command first.
    package private(set) var arguments: [Argument]

    init(_ name: StaticString, _ rest: [Argument]) { arguments = [.word(StaticWord(text: name))] + rest }

    /// A call of a function.
    init(function: StaticString, keys: [ByteSlice], _ rest: [Argument]) {
        self.init("FCALL", [.of(function), .number(keys.count)] + keys.map { .key($0) } + rest)
    }

    /// Gives the engine the functions. It refuses if it has them already, which is no failure.
    package static let load = TierCommand("FUNCTION", [.of("LOAD"), .of(TierFunctions.text)])
}

extension TierCommand.Argument {
    static func of(_ text: StaticString) -> Self { .word(TierCommand.StaticWord(text: text)) }
}
