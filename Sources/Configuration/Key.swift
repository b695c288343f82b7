import YAML

/// One key of the file: its name, its place in the settings, its syntax and its documentation.
///
/// The key's default is the initial value of its property in the settings, and is stated nowhere else.
struct Key<Root>: Sendable {
    let name: String
    /// The documentation for the operator: a comment in the shipped file.
    let doc: String
    let range: String?
    let isRequired: Bool
    /// Whether a reload cannot change the value, or any in the group: sockets, threads and memory are set up at the
    /// start.
    let isReadAtStart: Bool
    /// The keys in a group.
    let children: [Key<Root>]
    /// Comment lines shown in place of an empty list.
    let example: [String]
    let read: @Sendable (Node, inout Root, inout Reader) -> Void
    let write: @Sendable (Root) -> [String]
    /// Sets the value from the text of an environment variable; `nil` for groups, and for values that do not fit there.
    let set: (@Sendable (String, inout Root) throws(ValueMistake) -> Void)?

    init<Value: Sendable>(
        _ name: String, _ path: any WritableKeyPath<Root, Value> & Sendable, _ syntax: ValueSyntax<Value>,
        isRequired: Bool = false, isReadAtStart: Bool = false, example: [String] = [], _ doc: String
    ) {
        self.name = name
        self.doc = Self.doc(doc, isReadAtStart)
        range = syntax.range
        self.isRequired = isRequired
        self.isReadAtStart = isReadAtStart
        children = []
        self.example = example
        read = { node, root, reader in
            if let value = syntax.read(node, name, &reader) { root[keyPath: path] = value }
        }
        write = { syntax.write($0[keyPath: path]) }
        guard let parse = syntax.parse else {
            set = nil
            return
        }
        set = { (text: String, root: inout Root) throws(ValueMistake) in root[keyPath: path] = try parse(text) }
    }

    init<Value: Sendable>(
        _ name: String, _ path: any WritableKeyPath<Root, Value> & Sendable, _ scalar: ScalarSyntax<Value>,
        isRequired: Bool = false, isReadAtStart: Bool = false, _ doc: String
    ) {
        self.init(name, path, ValueSyntax(scalar), isRequired: isRequired, isReadAtStart: isReadAtStart, doc)
    }

    /// A group of keys.
    init(_ name: String, isReadAtStart: Bool = false, _ doc: String, _ keys: [Key<Root>]) {
        self.name = name
        self.doc = Self.doc(doc, isReadAtStart)
        range = nil
        isRequired = false
        self.isReadAtStart = isReadAtStart
        children = keys
        example = []
        read = { node, root, reader in reader.read(node, as: keys, into: &root, called: "`\(name)`") }
        write = { DefaultFile.lines(of: keys, in: $0) }
        set = nil
    }

    private static func doc(_ text: String, _ isReadAtStart: Bool) -> String {
        isReadAtStart ? text + " Read at the start only." : text
    }
}
