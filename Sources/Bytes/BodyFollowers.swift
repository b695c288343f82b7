/// The followers of a body. Each is notified once of new bytes or of the end, and again only after `rearm`.
struct BodyFollowers: Sendable {
    typealias Notice = @Sendable () -> Void

    private struct Follower: Sendable {
        let id: Int
        let notify: Notice
        /// A notice is on its way: no second one is sent until `rearm`.
        var isPending = false
    }

    private var followers: [Follower] = []

    mutating func add(id: Int, _ notify: @escaping Notice) { followers.append(Follower(id: id, notify: notify)) }

    /// The follower is about to read: it may be notified again.
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
