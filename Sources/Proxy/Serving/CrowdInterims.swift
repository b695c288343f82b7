import Bytes

/// The interim responses for a crowd's members, which are sent to a few members at a time: the responses, and the next
/// member. Each member's entry counts how many of them it was sent.
///
/// The members are visited in order, and from the first again if a response came after some had been visited. A new
/// member stands at the end, and so is reached as well.
struct CrowdInterims {
    private var responses: [ByteSlice] = []
    /// The responses from index `since` on, joined: most members lack the same ones.
    private var joined: (since: Int, bytes: ByteSlice)?
    /// The next member.
    private var next = 0
    /// Whether the members before `next` are to be visited as well, after the last.
    private var beginsAgain = false

    var isEmpty: Bool { responses.isEmpty }
    /// The number of responses.
    var count: Int { responses.count }

    mutating func append(_ response: ByteSlice) {
        responses.append(response)
        joined = nil
        beginsAgain = next > 0
    }

    /// Whether some of `members` members may lack a response.
    func areToBeTold(to members: Int) -> Bool { !isEmpty && (beginsAgain || next < members) }

    /// The index of the next member to visit, of `members`; `nil` once all have been visited.
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

    /// The responses after the first `heard`, joined.
    mutating func bytes(since heard: Int) -> ByteSlice {
        if let joined, joined.since == heard { return joined.bytes }
        let bytes = responses[heard...].inOne()
        joined = (heard, bytes)
        return bytes
    }
}
