/// Something that clients can talk to: the program's public or admin listener, or (in the self-tests) the origin.
protocol Peer {
    var endpoint: Endpoint { get }
}

struct Address: Peer {
    let endpoint: Endpoint
}

extension Peer {
    var scheme: String {
        switch endpoint {
        case .tls, .framedTLS: "https"
        case .tcp, .framed, .unix: "http"
        }
    }
    var host: String { "127.0.0.1:\(endpoint.port)" }

    func connect() throws -> Conversation { try Conversation(with: endpoint) }

    /// The text of a request with `Host`; fields as "Name: value".
    func request(_ method: String, _ target: String, _ fields: [String] = [], body: String? = nil) -> String {
        var lines = ["\(method) \(target) HTTP/1.1"]
        if !fields.contains(where: { $0.lowercased().hasPrefix("host:") }) { lines.append("Host: \(host)") }
        lines += fields
        if let body { lines.append("Content-Length: \(body.utf8.count)") }
        return (lines + ["", body ?? ""]).joined(separator: "\r\n")
    }

    /// One request on a connection of its own, to the end of the answer.
    @discardableResult
    func send(_ method: String, _ target: String, _ fields: String..., body: String? = nil) throws -> Answer {
        try send(method, target, fields, body: body)
    }

    @discardableResult
    func send(_ method: String, _ target: String, _ fields: [String], body: String? = nil) throws -> Answer {
        let conversation = try connect()
        try conversation.send(request(method, target, fields, body: body))
        return try conversation.answer(to: method)
    }

    @discardableResult
    func get(_ target: String, _ fields: String...) throws -> Answer {
        let conversation = try connect()
        try conversation.send(request("GET", target, fields))
        return try conversation.answer()
    }

    /// `count` clients at once, each on its own connection.
    func crowd(
        _ count: Int, get target: String, _ fields: String..., pace: Visitor.Pace = .eager, keepsOpen: Bool = false,
        seed: Int = 0
    ) -> Crowd {
        var visitor = visitor(target, fields, seed: seed)
        visitor.pace = pace
        visitor.keepsOpen = keepsOpen
        return Crowd(at: endpoint, Array(repeating: visitor, count: count))
    }

    /// One client of a mixed crowd.
    func visitor(_ target: String, _ fields: [String] = [], seed: Int = 0) -> Visitor {
        Visitor(request: Array(request("GET", target, fields).utf8), pattern: Pattern(seed: seed))
    }
}
