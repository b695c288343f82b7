/// How many field names a message may hold in lists that each of its lines is compared with: the options of `Connection`,
/// or what qualified directives name.
///
/// Real ones hold a handful. Without a bound, the kilobytes of one head keep a loop busy for tens of milliseconds.
struct FieldNameBound: Sendable, Equatable {
    /// Members of all lists, empty ones too.
    static let mostMembers: UInt32 = 64
    /// Bytes of all lists, with their commas and white space.
    static let mostBytes: UInt32 = 1024

    private var members: UInt32 = 0
    private var bytes: UInt32 = 0

    /// Counts another list of the same message.
    /// - Returns: whether all so far are within the bound.
    mutating func takes(_ list: Span<UInt8>) -> Bool {
        bytes &+= UInt32(truncatingIfNeeded: list.count)
        members &+= 1
        guard bytes <= Self.mostBytes else { return false }
        for index in list.indices where list[index] == UInt8(ascii: ",") { members &+= 1 }
        return members <= Self.mostMembers
    }
}
