/// A place in a configuration file, as editors count it: lines and columns from 1, columns in Unicode scalars.
package struct Position: Hashable, Comparable, Sendable {
    /// The line and the column, both from 1.
    package var line: Int
    package var column: Int

    package init(line: Int, column: Int) {
        self.line = line
        self.column = column
    }

    package static func < (left: Position, right: Position) -> Bool {
        (left.line, left.column) < (right.line, right.column)
    }
}

/// A mistake in a configuration file or in an environment variable: its place, its description and the advice.
package struct Mistake: Error, Equatable, Sendable, CustomStringConvertible {
    /// The file's name, as the operator gave it, or the name of the variable.
    package var path: String
    /// `nil` for a variable.
    package var position: Position?
    package var message: String

    package init(path: String, position: Position?, message: String) {
        self.path = path
        self.position = position
        self.message = message
    }

    /// As `description`, in the form of a compiler's warning.
    package var warning: String { "\(place): warning: \(message)" }

    /// `file:line:column: message`, which editors and CI systems recognise.
    package var description: String { "\(place): \(message)" }

    private var place: String { position.map { "\(path):\($0.line):\($0.column)" } ?? path }
}
