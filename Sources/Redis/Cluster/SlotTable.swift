import Bytes

/// Which node has which slots. A value without I/O.
///
/// The name of a node is its address and port, `10.0.0.1:6381`, as the nodes write it in redirections.
struct SlotTable: Sendable {
    /// The index in `nodes` of each slot's node; `nobody`: none has the slot. Empty until a node has told.
    private var owners: [UInt16] = []
    /// The names of the nodes, each once.
    private(set) var nodes: [ByteSlice] = []

    private static let nobody = UInt16.max
    /// The most nodes of a table. Redis advises against more than 1,000.
    static let mostNodes = 1024

    /// A table that knows no slot.
    init() {}

    /// - Parameters:
    ///   - answer: to `CLUSTER SLOTS`: for each range of slots its first, its last, its node, then replicas.
    ///   - host: the address of the node that answered: it may not know its own.
    /// - Returns: `nil` if the answer is none, or names no node.
    init?(_ answer: RESPValue, from host: ByteSlice) {
        guard case .array(let ranges) = answer else { return nil }
        for range in ranges {
            guard case .array(let parts) = range, parts.count >= 3, case .integer(let first) = parts[0],
                case .integer(let last) = parts[1], let lower = ClusterSlot(first), let upper = ClusterSlot(last),
                lower.number <= upper.number, case .array(let node) = parts[2], node.count >= 2,
                case .integer(let port) = node[1], port > 0, port < 65536
            else { return nil }
            let known = node[0].text ?? .empty
            let name = ByteBuffer(capacity: known.count + 8)
            name.append(known.isEmpty ? host : known)
            name.append(UInt8(ascii: ":"))
            name.append(decimal: Int(port))
            for slot in lower.number...upper.number { set(slot, to: name.copied()) }
        }
        if nodes.isEmpty { return nil }
    }

    /// The name of the slot's node, if it is known.
    subscript(slot: ClusterSlot) -> ByteSlice? {
        guard !owners.isEmpty, owners[Int(slot.number)] != Self.nobody else { return nil }
        return nodes[Int(owners[Int(slot.number)])]
    }

    /// The node `name` has the slot from now on.
    mutating func move(_ slot: ClusterSlot, to name: ByteSlice) { set(slot.number, to: name) }

    private mutating func set(_ slot: UInt16, to name: ByteSlice) {
        if owners.isEmpty { owners = Array(repeating: Self.nobody, count: ClusterSlot.count) }
        if let last = nodes.indices.last, nodes[last] == name { return owners[Int(slot)] = UInt16(last) }
        if let index = nodes.firstIndex(of: name) {
            owners[Int(slot)] = UInt16(index)
        } else if nodes.count < Self.mostNodes {
            nodes.append(name)
            owners[Int(slot)] = UInt16(nodes.count - 1)
        }
    }
}
