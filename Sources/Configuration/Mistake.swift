/// A place in a configuration file, as editors count it: lines and columns from 1, columns in Unicode scalars.
public struct Position: Hashable, Comparable, Sendable {
    /// The line and the column, both from 1.
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

/// A mistake in a configuration file: its place, its description and the advice.
public struct Mistake: Error, Equatable, Sendable, CustomStringConvertible {
    /// The file's name, as the operator gave it.
    public var path: String
    public var position: Position
    public var message: String

    public init(path: String, position: Position, message: String) {
        self.path = path
        self.position = position
        self.message = message
    }

    /// As `description`, in the form of a compiler's warning.
    public var warning: String { "\(path):\(position.line):\(position.column): warning: \(message)" }

    /// `file:line:column: message`, which editors and CI systems recognise.
    public var description: String { "\(path):\(position.line):\(position.column): \(message)" }
}
