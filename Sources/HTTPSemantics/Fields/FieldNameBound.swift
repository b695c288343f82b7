/// How many field names a message may hold in lists that are compared with each of its lines: the options of
/// `Connection`, or the arguments of qualified directives.
///
/// Lists in practice have a handful. Without a bound, the kilobytes of one head keep a loop busy for tens of
/// milliseconds.
struct FieldNameBound: Sendable, Equatable {
    /// Members of all lists, including empty ones.
    static let mostMembers: UInt32 = 64
    /// Bytes of all lists, including commas and white space.
    static let mostBytes: UInt32 = 1024

    private var members: UInt32 = 0
    private var bytes: UInt32 = 0

    /// Counts another list of the same message.
    /// - Returns: whether the total is within the bound.
    mutating func takes(_ list: Span<UInt8>) -> Bool {
        bytes &+= UInt32(truncatingIfNeeded: list.count)
        members &+= 1
        guard bytes <= Self.mostBytes else { return false }
        for index in list.indices where list[index] == UInt8(ascii: ",") { members &+= 1 }
        return members <= Self.mostMembers
    }
}
