extension Node {
    /// The root of the one document in `text`; `nil` if `text` has no document. No I/O.
    /// - Throws: the first error: `text` is not YAML, has a second document, or is larger or deeper than `NodeReader`
    ///   reads.
    package static func parse(_ text: String) throws(ParseError) -> Node? {
        var reader = NodeReader(try Events(of: text))
        return try reader.document()
    }
}

/// Builds nodes from events.
struct NodeReader {
    /// How deep lists and mappings may be nested, since each level takes room on the stack. Configuration files need
    /// about six levels.
    static let mostLevels = 64
    /// How many nodes a document may have after its aliases are replaced: ten lines of aliases of aliases can stand for
    /// billions of nodes.
    static let mostNodes = 1_000_000

    private let events: Events
    private var anchors: [String: (node: Node, size: Int)] = [:]
    private var size = 0
    private var levels = 0

    init(_ events: Events) { self.events = events }

    mutating func document() throws(ParseError) -> Node? {
        var root: Node?
        while true {
            let (event, mark) = try events.next()
            switch event {
            case .streamStart, .documentEnd:
                continue
            case .streamEnd:
                return root
            case .documentStart:
                guard root == nil else {
                    let context = ParseError.Context(
                        text: "expected a single document in the stream", mark: Mark(line: 1, column: 1))
                    throw ParseError("but found another document", at: mark, context: context)
                }
                let (first, mark) = try events.next()
                root = try node(of: first, at: mark)
            case .alias, .scalar, .listStart, .listEnd, .mappingStart, .mappingEnd:
                throw ParseError("did not expect this here", at: mark)
            }
        }
    }

    private mutating func node(of event: Events.Event, at mark: Mark) throws(ParseError) -> Node {
        let before = size
        try grow(by: 1, at: mark)
        switch event {
        case .alias(let name):
            guard let target = anchors[name] else { throw ParseError("found undefined alias", at: mark) }
            try grow(by: target.size, at: mark)
            return target.node
        case .scalar(let string, let isPlain, let anchor):
            let node = Node.scalar(Node.Scalar(string: string, isPlain: isPlain, mark: mark))
            note(node, anchor, size: 1)
            return node
        case .listStart(let anchor):
            try enter(at: mark)
            var items: [Node] = []
            while true {
                let (event, start) = try events.next()
                if case .listEnd = event { break }
                items.append(try node(of: event, at: start))
            }
            levels -= 1
            let node = Node.list(Node.List(items: items, mark: mark))
            note(node, anchor, size: size - before)
            return node
        case .mappingStart(let anchor):
            try enter(at: mark)
            var pairs: [Node.Mapping.Pair] = []
            while true {
                let (event, start) = try events.next()
                if case .mappingEnd = event { break }
                let key = try node(of: event, at: start)
                let (first, place) = try events.next()
                pairs.append((key, try node(of: first, at: place)))
            }
            levels -= 1
            let node = Node.mapping(Node.Mapping(pairs: pairs, mark: mark))
            note(node, anchor, size: size - before)
            return node
        case .streamStart, .streamEnd, .documentStart, .documentEnd, .listEnd, .mappingEnd:
            throw ParseError("did not expect this here", at: mark)
        }
    }

    /// A later anchor of the same name replaces the earlier one.
    private mutating func note(_ node: Node, _ anchor: String?, size: Int) {
        if let anchor { anchors[anchor] = (node, size) }
    }

    private mutating func enter(at mark: Mark) throws(ParseError) {
        levels += 1
        guard levels <= Self.mostLevels else {
            throw ParseError("found more than \(Self.mostLevels) levels of lists and mappings", at: mark)
        }
    }

    private mutating func grow(by count: Int, at mark: Mark) throws(ParseError) {
        size += count
        guard size <= Self.mostNodes else { throw ParseError("found more than \(Self.mostNodes) values", at: mark) }
    }
}
