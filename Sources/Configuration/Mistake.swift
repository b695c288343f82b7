/// A place in a configuration file, as editors count: from 1, columns in Unicode scalars.
public struct Position: Hashable, Comparable, Sendable {
    /// Both from 1.
    public var line: Int
    public var column: Int

    public init(line: Int, column: Int) {
        self.line = line
        self.column = column
    }

    public static func < (left: Position, right: Position) -> Bool {
        (left.line, left.column) < (right.line, right.column)
    }
}

/// Something wrong in a configuration file: where it is, what it is, and what to do.
public struct Mistake: Error, Equatable, Sendable, CustomStringConvertible {
    /// The file, as it was named to us.
    public var path: String
    public var position: Position
    public var message: String

    public init(path: String, position: Position, message: String) {
        self.path = path
        self.position = position
        self.message = message
    }

    /// The same as `description`, as compilers write of what does not keep them from going on.
    public var warning: String { "\(path):\(position.line):\(position.column): warning: \(message)" }

    /// `file:line:column: message`, which editors and CI systems recognise.
    public var description: String { "\(path):\(position.line):\(position.column): \(message)" }
}
