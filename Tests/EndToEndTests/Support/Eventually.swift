/// Something did not happen in time.
struct Late: Error, CustomStringConvertible {
    let what: String
    let place: String
    var description: String { "\(place): not in time: \(what)" }
}

// Swift 6.3.1 numbers closures inside `#expect` as if few came before it: one with the same type as another closure of
// the same function may silently become that one. So no closure type here is one that stands in an `#expect`:
// `eventually` and `stays` throw instead of telling, and `Conversation.progress` takes a `@Sendable` closure.

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

/// Something that must not happen did.
struct Broken: Error, CustomStringConvertible {
    let what: String
    let place: String
    var description: String { "\(place): not any more: \(what)" }
}

/// `condition` holds, and goes on holding for `time`. Only for promises that something does *not* happen.
func stays(
    _ what: String, for time: Duration, file: String = #fileID, line: Int = #line, _ condition: () throws -> Bool
) throws {
    let end = ContinuousClock.now + time
    repeat {
        guard try condition() else { throw Broken(what: what, place: "\(file):\(line)") }
        System.nap(.milliseconds(2))
    } while ContinuousClock.now < end
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
/// printed (`note`) and belong to the benchmarks. Less than connect-timeout, 5 s by default.
let aStall = Duration.seconds(4)
