/// The bytes of a load's requests, ready to send. All requests are the same, or differ in one number of fixed width,
/// which is overwritten.
struct RequestText {
    enum Numbers {
        /// No number: every request is the same.
        case none
        /// 1, 2, 3 and so on.
        case counting
        /// These numbers, over and over.
        case drawn([Int])
    }

    private(set) var bytes: [UInt8]
    /// The number of requests in `bytes`, which are sent in one write and whose responses are awaited together.
    let count: Int
    /// Whether all requests are the same, so that half of one may be completed with half of another.
    let isConstant: Bool

    private let numbers: Numbers
    private let digits: Range<Int>
    private var drawn = 0

    /// The placeholder of the number in a path.
    static let number = "########"

    /// - Parameters:
    ///   - path: contains `RequestText.number` if there are to be `numbers`.
    ///   - fields: field lines, each with its line end.
    ///   - host: `nil`: that of the port.
    init(
        method: String = "GET", path: String, fields: String = "", body: Int = 0, count: Int = 1,
        numbers: Numbers = .none, port: Int, host: String? = nil
    ) {
        var head = "\(method) \(path) HTTP/1.1\r\nHost: \(host ?? "127.0.0.1:\(port)")\r\n\(fields)"
        if body > 0 { head += "Content-Length: \(body)\r\n" }
        let one = Array("\(head)\r\n".utf8) + [UInt8](repeating: 0x78, count: body)
        bytes = Array((0..<count).map { _ in one }.joined())
        self.count = count
        self.numbers = numbers
        if case .none = numbers {
            isConstant = true
            digits = 0..<0
        } else {
            isConstant = false
            let first = one.firstIndex(of: UInt8(ascii: "#")) ?? 0
            digits = first..<(first + Self.number.utf8.count)
        }
    }

    /// Writes the next number over the last one.
    mutating func advance() {
        var value: Int
        switch numbers {
        case .none: return
        case .counting: value = drawn + 1
        case .drawn(let all): value = all[drawn % all.count]
        }
        drawn += 1
        for place in digits.reversed() {
            bytes[place] = UInt8(truncatingIfNeeded: 0x30 + value % 10)
            value /= 10
        }
    }

    /// `value` as it is written in a request.
    static func name(_ value: Int) -> String {
        let text = "\(value)"
        return String(repeating: "0", count: number.utf8.count - text.utf8.count) + text
    }
}
