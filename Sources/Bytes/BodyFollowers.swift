/// Who is to be told that there is more of a body, or its end: each once until it has looked.
struct BodyFollowers: Sendable {
    typealias Notice = @Sendable () -> Void

    private struct Follower: Sendable {
        let id: Int
        let notify: Notice
        /// A notice is on its way: no second one until the follower has looked.
        var isPending = false
    }

    private var followers: [Follower] = []

    mutating func add(id: Int, _ notify: @escaping Notice) { followers.append(Follower(id: id, notify: notify)) }

    /// The follower is about to look.
    mutating func rearm(id: Int) {
        if let index = followers.firstIndex(where: { $0.id == id }) { followers[index].isPending = false }
    }

    mutating func takeNotices() -> [Notice] {
        var notices: [Notice] = []
        for index in followers.indices where !followers[index].isPending {
            followers[index].isPending = true
            notices.append(followers[index].notify)
        }
        return notices
    }
}
