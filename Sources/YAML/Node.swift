/// A place in a text, as editors count: line and column from 1, columns in Unicode scalars.
package struct Mark: Sendable, Equatable {
    package let line: Int
    package let column: Int

    package init(line: Int, column: Int) {
        self.line = line
        self.column = column
    }
}

/// A value of a YAML document, with the place where it begins. Tags are ignored; an alias is replaced by the node that
/// its anchor names.
package enum Node: Sendable {
    package struct Scalar: Sendable {
        package let string: String
        /// Whether the value is a plain scalar: written without quotes and not as a block.
        package let isPlain: Bool
        package let mark: Mark
    }

    package struct List: Sendable {
        package let items: [Node]
        package let mark: Mark
    }

    package struct Mapping: Sendable {
        package typealias Pair = (key: Node, value: Node)
        /// In the order of the text; a key may come twice.
        package let pairs: [Pair]
        package let mark: Mark
    }

    case scalar(Scalar)
    case list(List)
    case mapping(Mapping)

    package var mark: Mark {
        switch self {
        case .scalar(let scalar): scalar.mark
        case .list(let list): list.mark
        case .mapping(let mapping): mapping.mark
        }
    }

    /// The text of a scalar; `nil` for a list or a mapping.
    package var string: String? {
        if case .scalar(let scalar) = self { scalar.string } else { nil }
    }

    /// The value of the first pair with this key; `nil` if there is no such pair, or if this node is not a mapping.
    package subscript(key: String) -> Node? {
        guard case .mapping(let mapping) = self else { return nil }
        return mapping.pairs.first { $0.key.string == key }?.value
    }
}
