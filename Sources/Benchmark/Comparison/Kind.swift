/// The programs that are compared.
enum Kind: String, CaseIterable {
    case coalesced, bare, haproxy, nginx, varnish

    /// The peers: other programs that do the same work.
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

/// The paths of the programs under test, and the length of their measurement.
struct Plan {
    var coalesced = ".build/release/coalesced"
    var bare = ".build/release/BareResponder"
    var folder = ""
    var isQuick = false

    /// Seconds of load in one measurement.
    var seconds: Double { isQuick ? 0.75 : 2 }
    var repeats: Int { isQuick ? 2 : 3 }
    /// The number of runs of coalesced, and of the programs that are compared with it pair by pair, in rows on which a
    /// goal depends.
    var pairs: Int { isQuick ? 3 : 9 }
}
