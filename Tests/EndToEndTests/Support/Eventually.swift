/// Something did not happen in time.
struct Late: Error, CustomStringConvertible {
    let what: String
    let place: String
    var description: String { "\(place): not in time: \(what)" }
}

/// Looks again and again until `condition` holds; it is a promise about state that can be seen, never a pause.
func eventually(
    _ what: String, within limit: Duration = .seconds(10), file: String = #fileID, line: Int = #line,
    _ condition: () throws -> Bool
) throws {
    let deadline = ContinuousClock.now + limit
    while try !condition() {
        guard ContinuousClock.now < deadline else { throw Late(what: what, place: "\(file):\(line)") }
        System.nap(.milliseconds(2))
    }
}

/// Does `condition` hold, and go on holding for `time`? Only for promises that something does *not* happen.
func stays(for time: Duration, _ condition: () throws -> Bool) rethrows -> Bool {
    let end = ContinuousClock.now + time
    repeat {
        guard try condition() else { return false }
        System.nap(.milliseconds(2))
    } while ContinuousClock.now < end
    return true
}

/// How long `body` takes.
func measured(_ body: () throws -> Void) rethrows -> Duration {
    try ContinuousClock().measure(body)
}

extension Duration {
    var inMilliseconds: Double {
        Double(components.seconds) * 1_000 + Double(components.attoseconds) / 1e15
    }

    var rounded: String { "\(Int(inMilliseconds.rounded())) ms" }
}

typealias Instant = ContinuousClock.Instant

/// What a shared machine may take on top of any bound of the specification before a test fails. The exact figures are
/// printed (`note`) and belong to the benchmarks.
let aStall = Duration.seconds(1)
