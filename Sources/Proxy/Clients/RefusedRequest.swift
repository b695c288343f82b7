import HTTPSemantics

/// What was answered without a transaction, for the log. A class, so that a connection that waits does not hold room for a head.
final class RefusedRequest {
    let status: UInt16
    /// With `fields`; `nil` where it could not be read.
    let head: RequestHead?
    let fields: HeadBlock?

    init(status: UInt16, head: RequestHead?, fields: HeadBlock?) {
        self.status = status
        self.head = head
        self.fields = fields
    }
}
