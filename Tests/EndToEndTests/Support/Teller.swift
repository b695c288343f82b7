import Testing

/// What an origin may tell visitors apart by without saying so: their cookies, or any other field.
enum Teller: CustomTestStringConvertible {
    case cookie
    case field(String)

    private var name: String {
        switch self {
        case .cookie: "Cookie"
        case .field(let name): name
        }
    }

    var testDescription: String { name }

    /// Two kinds of visitors have one of these values; a third does not send the field.
    var values: (first: String, second: String) {
        switch self {
        case .cookie: ("session=a", "session=b")
        case .field: ("one", "two")
        }
    }

    /// The page of those who do not send it.
    static let common = "anonymous"

    func line(_ value: String) -> String { "\(name): \(value)" }

    /// The page of whoever asks, which shows the field's value.
    func page(_ request: Received, _ fields: [String] = []) -> [Step] {
        let body = request[name.lowercased()] ?? Self.common
        return [.head(200, fields + ["Content-Length: \(body.utf8.count)"]), .text(body)]
    }

    // MARK: A crowd

    /// Ten visitors of each kind, in turns. Those with a field of the kind have a name of their own, too; those with
    /// cookies ask in the same words.
    func crowd(_ proxy: Program, _ target: String) -> Crowd {
        let visitors = (0..<30).map { index in
            var lines = kinds[index % 3].map { [line($0)] } ?? []
            if case .field = self { lines.insert("User-Agent: \(index)", at: 0) }
            return proxy.visitor(target, lines)
        }
        return Crowd(at: proxy.endpoint, visitors)
    }

    /// What each of the crowd is to see.
    var pages: [String] { (0..<30).map { kinds[$0 % 3] ?? Self.common } }

    private var kinds: [String?] { [values.first, values.second, nil] }
}
