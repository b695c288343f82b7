/// The programs that are compared.
enum Kind: String, CaseIterable {
    case coalesced, bare, haproxy, nginx, varnish

    /// The peers: who does the same work.
    static let peers: [Kind] = [.haproxy, .nginx, .varnish]

    var name: String {
        switch self {
        case .coalesced: "coalesced"
        case .bare: "bare responder"
        case .haproxy: "HAProxy"
        case .nginx: "nginx"
        case .varnish: "Varnish"
        }
    }
}

/// Where the programs under test are, and for how long they are measured.
struct Plan {
    var coalesced = ".build/release/coalesced"
    var bare = ".build/release/BareResponder"
    var folder = ""
    var isQuick = false

    /// Seconds of load in one measurement.
    var seconds: Double { isQuick ? 0.75 : 2 }
    var repeats: Int { isQuick ? 2 : 3 }
    /// Runs of ours and of those it is compared with pair by pair, in rows that a goal hangs on.
    var pairs: Int { isQuick ? 3 : 9 }
}
