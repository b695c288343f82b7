package import Bytes

/// One command for the engine: its name and its arguments. They are bytes, and no argument needs quoting.
///
/// The caller adds all arguments before it sends the command. The command does not change from then on, since a cluster
/// may ask for it to be sent to another node.
package final class RedisCommand {
    /// The arguments as the engine reads them, the name first.
    private let arguments: ByteBuffer
    /// The number of arguments, with the name.
    package private(set) var count = 0
    /// Where the first key stands in `arguments`.
    private var key: Range<Int>?

    /// A command without arguments.
    /// - Parameters:
    ///   - name: such as `FCALL`.
    ///   - size: about how many bytes the arguments have.
    package init(_ name: StaticString, size: Int = 128) {
        arguments = ByteBuffer(capacity: size)
        add(name)
    }

    /// Adds an argument that is no key.
    package func add(_ argument: Span<UInt8>) {
        begin(argument.count)
        arguments.append(argument)
        end()
    }

    /// Adds an argument that is no key.
    package func add(_ argument: ByteSlice) { add(argument.span) }

    /// Adds an argument that is no key.
    package func add(_ argument: StaticString) { add(argument.bytes) }

    /// Adds a number, in decimal digits.
    package func add(_ number: Int) {
        begin(number.decimalLength)
        arguments.append(decimal: number)
        end()
    }

    /// Adds a key. The first key of a command decides which node of a cluster gets it.
    package func add(key: Span<UInt8>) {
        begin(key.count)
        if self.key == nil { self.key = arguments.count..<arguments.count + key.count }
        arguments.append(key)
        end()
    }

    /// Adds a key. The first key of a command decides which node of a cluster gets it.
    package func add(key: ByteSlice) { add(key: key.span) }

    private func begin(_ length: Int) {
        arguments.append(UInt8(ascii: "$"))
        arguments.append(decimal: length)
        arguments.append("\r\n")
        count += 1
    }

    private func end() { arguments.append("\r\n") }

    /// About how many bytes `write` appends, rounded up.
    package var size: Int { arguments.count + 24 }

    /// The hash slot of the first key; `nil` if the command has no key.
    package var slot: ClusterSlot? {
        guard let key else { return nil }
        let arguments = arguments
        return ClusterSlot(of: arguments.span.extracting(key))
    }

    /// Appends the command as an array of texts, the only form in which an engine takes commands.
    package func write(to output: ByteBuffer) {
        let arguments = arguments
        output.append(UInt8(ascii: "*"))
        output.append(decimal: count)
        output.append("\r\n")
        output.append(arguments.span)
    }
}

extension Int {
    /// The number of bytes of the number in decimal digits, with its sign.
    fileprivate var decimalLength: Int {
        var (length, left) = (self < 0 ? 2 : 1, magnitude / 10)
        while left > 0 { (length, left) = (length + 1, left / 10) }
        return length
    }
}
