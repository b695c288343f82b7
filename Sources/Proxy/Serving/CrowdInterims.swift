import Bytes

/// The interim responses that a crowd's members are told, a few members at a time: what came, and which members are next.
/// How many of them each member has had is kept with the member.
///
/// The members are gone through in order, and from the first again where one came after some had been told. Who joins
/// stands at the end, and so is reached as well.
struct CrowdInterims {
    private var responses: [ByteSlice] = []
    /// Several of them in one, from the one before which so many are: most members miss the same ones.
    private var joined: (since: Int, bytes: ByteSlice)?
    /// The next member.
    private var next = 0
    /// Whether those before it are to be told as well, behind the last.
    private var beginsAgain = false

    var isEmpty: Bool { responses.isEmpty }
    /// How many there are.
    var count: Int { responses.count }

    mutating func append(_ response: ByteSlice) {
        responses.append(response)
        joined = nil
        beginsAgain = next > 0
    }

    /// Whether some of so many members may not have had all.
    func areToBeTold(to members: Int) -> Bool { !isEmpty && (beginsAgain || next < members) }

    /// The member whose turn it is, of so many; `nil` when all have been told.
    mutating func nextToTell(of members: Int) -> Int? {
        guard areToBeTold(to: members) else { return nil }
        if next >= members {
            next = 0
            beginsAgain = false
            if members == 0 { return nil }
        }
        defer { next += 1 }
        return next
    }

    /// All but the first `heard`, one after another.
    mutating func bytes(since heard: Int) -> ByteSlice {
        if let joined, joined.since == heard { return joined.bytes }
        let bytes = responses[heard...].inOne()
        joined = (heard, bytes)
        return bytes
    }
}
