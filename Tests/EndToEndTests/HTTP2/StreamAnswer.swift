/// What came on one stream.
struct StreamAnswer {
    var interim: [[Field]] = []
    var fields: [Field] = []
    var trailers: [Field] = []
    var body = Body()
    /// The peer has ended it in an orderly way.
    var isComplete = false
    /// The peer has reset it.
    var reset: ErrorCode?
    var askedAt: Instant?
    var endedAt: Instant?
    /// DATA frames.
    var pieces = 0

    var isOver: Bool { isComplete || reset != nil }
    var status: Int { self[":status"].flatMap { Int($0) } ?? 0 }
    var text: String { body.text }

    subscript(name: String) -> String? { fields.first { $0.name == name }?.value }

    func isWhole(_ length: Int) -> Bool { isComplete && body.length == length && body.isIntact }

    var soFar: String {
        let end = isComplete ? "complete" : reset.map { "reset with \($0)" } ?? "pending"
        return "status \(status), \(body.length) bytes, \(end)"
    }

    mutating func accept(_ section: [Field]) {
        let status = section.first { $0.name == ":status" }?.value
        if let status, status.hasPrefix("1") {
            interim.append(section)
        } else if status != nil {
            fields = section
        } else {
            trailers = section
        }
    }
}
