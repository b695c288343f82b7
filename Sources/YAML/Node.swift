/// A place in a text, as editors count: line and column from 1, columns in Unicode scalars.
public struct Mark: Sendable, Equatable {
    public let line: Int
    public let column: Int

    public init(line: Int, column: Int) {
        self.line = line
        self.column = column
    }
}

/// A value of a YAML document, with the place where it begins. Tags are ignored; an alias is replaced by the node that
/// its anchor names.
public enum Node: Sendable {
    public struct Scalar: Sendable {
        public let string: String
        /// Whether the value is a plain scalar: written without quotes and not as a block.
        public let isPlain: Bool
        public let mark: Mark
    }

    public struct List: Sendable {
        public let items: [Node]
        public let mark: Mark
    }

    public struct Mapping: Sendable {
        public typealias Pair = (key: Node, value: Node)
        /// In the order of the text; a key may come twice.
        public let pairs: [Pair]
        public let mark: Mark
    }

    case scalar(Scalar)
    case list(List)
    case mapping(Mapping)

    public var mark: Mark {
        switch self {
        case .scalar(let scalar): scalar.mark
        case .list(let list): list.mark
        case .mapping(let mapping): mapping.mark
        }
    }

    /// The text of a scalar; `nil` for a list or a mapping.
    public var string: String? {
        if case .scalar(let scalar) = self { scalar.string } else { nil }
    }

    /// The value of the first pair with this key; `nil` if there is no such pair, or if this node is not a mapping.
    public subscript(key: String) -> Node? {
        guard case .mapping(let mapping) = self else { return nil }
        return mapping.pairs.first { $0.key.string == key }?.value
    }
}
