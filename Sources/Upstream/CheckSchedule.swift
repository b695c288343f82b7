/// When each place of an origin is checked. A value without I/O: time and chance are arguments. Times are nanoseconds of
/// the monotonic clock.
///
/// ```
/// (new) ─→ waiting ─its time has come→ checking ─the check ends→ waiting
/// waiting, checking ─the place has left→ (gone)
/// ```
/// The first checks are spread over a tenth of the interval, so that not all servers are asked in one moment. Later ones
/// are an interval apart, give or take a tenth at random, so that several programs in front of the same servers do not
/// keep step.
struct CheckSchedule: Sendable {
    private enum Phase: Sendable {
        case waiting(until: Int64)
        /// A check is under way; the next one begins at `next`, or when this one has ended.
        case checking(next: Int64)
    }

    private let interval: Int64
    /// By the number of the place.
    private var phases: [Int: Phase] = [:]

    /// - Parameter interval: nanoseconds.
    init(interval: Int64) { self.interval = interval }

    /// The places that are checked from now on. A place that was checked before keeps its time.
    mutating func change(to places: [Int], at now: Int64) {
        let former = phases
        let new = places.filter { former[$0] == nil }
        phases = former.filter { places.contains($0.key) }
        for (index, place) in new.enumerated() {
            phases[place] = .waiting(until: now + interval / 10 * Int64(index) / Int64(new.count))
        }
    }

    /// When `begin` has something to return; `nil`: not before a check has ended.
    var next: Int64? {
        phases.values.compactMap { if case .waiting(let until) = $0 { until } else { nil } }.min()
    }

    /// The places to check now, in no order. For each of them `ended` is to be called.
    mutating func begin(at now: Int64, using random: inout some RandomNumberGenerator) -> [Int] {
        var due: [Int] = []
        for (place, phase) in phases {
            guard case .waiting(let until) = phase, until <= now else { continue }
            due.append(place)
            let tenth = interval / 10
            phases[place] = .checking(next: now + interval + Int64.random(in: -tenth...tenth, using: &random))
        }
        return due
    }

    /// The check of a place has ended. Ignored if the place has left.
    mutating func ended(_ place: Int) {
        guard case .checking(let next) = phases[place] else { return }
        phases[place] = .waiting(until: next)
    }
}
