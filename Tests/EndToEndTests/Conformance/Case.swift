import Testing

/// One promise of the rule book as a conversation: what the origin says from now on, and what clients then get.
///
///     Case("s-maxage goes before max-age", .answers("Cache-Control: max-age=1, s-maxage=100"), .get(.fetched), .pause(1.2), .get(.hit))
///
/// Every case has a URL of its own, so that all run at the same time against one program. In targets, fields and bodies
/// `@` stands for the path of that URL, `{host}` for the proxy, `{scheme}` for the one by which it is asked and
/// `{other}` for the other one, `{port}` for the scheme's usual port, `{version}` for the clients' of HTTP, and `{-100}` for the HTTP date a hundred seconds
/// before the case began.
struct Case: Sendable, CustomTestStringConvertible {
    let promise: String
    /// The first segment of the URL: which route of the program (`Stage.configuration`) it goes through.
    let route: String
    let moves: [Move]

    init(_ promise: String, by route: String = "plain", _ moves: Move...) {
        (self.promise, self.route, self.moves) = (promise, route, moves)
    }

    var testDescription: String { promise }
}

/// How a request was answered, as both ends saw it.
enum Outcome: Sendable {
    /// By the origin, which was asked once, and not conditionally by the proxy itself.
    case fetched
    /// After the origin was asked once, conditionally.
    case validated
    /// From the store; the origin heard nothing.
    case hit
    /// From the store, whatever the origin heard (a refresh in the background, a failure).
    case stale
    /// By the proxy itself; the origin heard nothing.
    case refused
    /// By the proxy itself, for an origin that failed.
    case failed
    /// By a fetch for each client (of several).
    case fetchedEach
}

enum Move: Sendable {
    /// From now on the origin answers so.
    case script(Reply)
    /// `clients` ask at the same time.
    case ask(String, clients: Int, Outcome, [Detail])
    /// Somebody asks with GET, and the origin has heard it; what comes is looked at with `end`.
    case begin([Detail])
    case end([Detail])
    /// At least so long.
    case pause(Duration)
    /// Waits until the origin has been asked so often in all: for what happens in the background.
    case originAsked(Int)
    /// Waits until nothing is fetched in the background any more. For programs that do not tell, a second.
    case fetchesEnd
}

/// What the origin does when it is asked.
struct Reply: Sendable {
    var status = 200
    var fields: [String] = []
    /// `nil`: text that no other reply of the case has.
    var body: String?
    /// Only when all who ask are in. Of programs that do not tell, it is supposed after 300 ms.
    var waitsForAll = false
    /// Performed before.
    var before: [Step] = []
    /// Instead of all else.
    var steps: [Step]?
}

/// More about a request, or about what becomes of it. A plain string is a field of the request.
enum Detail: Sendable, ExpressibleByStringLiteral, ExpressibleByStringInterpolation {
    init(stringLiteral field: String) { self = .with(field) }

    case with(String)
    /// Appended to the case's path.
    case at(String)
    /// Instead of the case's path.
    case target(String)
    case content(String)
    /// The client speaks HTTP/1.0.
    case oldClient

    case status(Int)
    case body(String)
    /// A field of the answer, all its lines joined with ", ".
    case has(String, String)
    case lacks(String)
    /// The lines of that name, one by one.
    case lines(String, [String])
    case contains(String, String)
    /// So many of the answers have that field with that in it.
    case number(Int, String, String)
    case age(ClosedRange<Int>)
    case interims([Int])
    case trailers([String])
    /// The answer was cut off.
    case cutOff
    /// What the origin was asked.
    case asked(String, String)
    case askedContaining(String, String)
    case askedWithout(String)
    case askedFor(String)
}

extension Move {
    static func answers(_ fields: String..., body: String? = nil) -> Self { .script(Reply(fields: fields, body: body)) }

    static func answers(_ status: Int, _ fields: String..., body: String? = nil) -> Self {
        .script(Reply(status: status, fields: fields, body: body))
    }

    static func answersSlowly(_ seconds: Double, _ status: Int, _ fields: String..., body: String? = nil) -> Self {
        .script(Reply(status: status, fields: fields, body: body, before: [.wait(.seconds(seconds))]))
    }

    /// When all who ask are in.
    static func answersTogether(_ status: Int, _ fields: String..., body: String? = nil) -> Self {
        .script(Reply(status: status, fields: fields, body: body, waitsForAll: true))
    }

    /// Interim responses come before the answer, when all who ask are in.
    static func answersAfter(_ interims: [Step], _ fields: String..., body: String? = nil) -> Self {
        .script(Reply(fields: fields, body: body, waitsForAll: true, before: interims))
    }

    static func does(_ steps: Step...) -> Self { .script(Reply(steps: steps)) }

    static func pause(_ seconds: Double) -> Self { .pause(.seconds(seconds)) }

    static func get(_ outcome: Outcome, _ details: Detail...) -> Self { .ask("GET", clients: 1, outcome, details) }
    static func head(_ outcome: Outcome, _ details: Detail...) -> Self { .ask("HEAD", clients: 1, outcome, details) }
    static func send(_ method: String, _ outcome: Outcome, _ details: Detail...) -> Self {
        .ask(method, clients: 1, outcome, details)
    }
    static func begin(_ details: Detail...) -> Self { .begin(details) }
    static func end(_ details: Detail...) -> Self { .end(details) }
    static func together(_ clients: Int, _ outcome: Outcome, _ details: Detail...) -> Self {
        .ask("GET", clients: clients, outcome, details)
    }
}

/// A table, one case a line; each is checked for its types by itself.
@resultBuilder enum CaseTable {
    static func buildExpression(_ one: Case) -> [Case] { [one] }
    static func buildExpression(_ several: [Case]) -> [Case] { several }
    static func buildBlock(_ parts: [Case]...) -> [Case] { parts.flatMap { $0 } }
    static func buildArray(_ parts: [[Case]]) -> [Case] { parts.flatMap { $0 } }
    static func buildOptional(_ part: [Case]?) -> [Case] { part ?? [] }
}
