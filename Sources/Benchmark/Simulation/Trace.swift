import Foundation
import Repeatable

/// The requests of clients, in order. An object's size follows from its number.
struct Trace {
    let name: String
    let requests: [Int]
    /// The clients that wait together with a request, by the request's place in the trace: the `popularity` in the
    /// store. 0 if there is no entry.
    var waiters: [Int: Int] = [:]

    /// 256 bytes to 2 MiB, most of them some KiB, as on the web.
    static func size(of object: Int) -> Int {
        var generator = SeededGenerator(seed: UInt64(truncatingIfNeeded: object) &* 2_654_435_761)
        let octave = (0..<4).reduce(0) { sum, _ in sum + Int(generator.next() % 4) }
        return (256 << octave) + Int(generator.next() % UInt64(256 << octave))
    }

    /// Independent draws from `objects` by Zipf's law.
    static func zipf(_ count: Int, objects: Int, exponent: Double, seed: UInt64) -> Trace {
        var generator = SeededGenerator(seed: seed)
        var draw = ZipfDraw(objects: objects, exponent: exponent)
        return Trace(name: "zipf \(exponent)", requests: (0..<count).map { _ in draw.next(&generator) })
    }

    /// Zipf requests, and at intervals a client that reads thousands of objects that no other client requests.
    static func scans(_ count: Int, objects: Int, seed: UInt64) -> Trace {
        var generator = SeededGenerator(seed: seed)
        var draw = ZipfDraw(objects: objects, exponent: 0.9)
        var requests: [Int] = []
        var fresh = objects
        while requests.count < count {
            for _ in 0..<20_000 { requests.append(draw.next(&generator)) }
            for _ in 0..<10_000 { requests.append(fresh); fresh += 1 }
        }
        return Trace(name: "zipf 0.9 with scans", requests: Array(requests.prefix(count)))
    }

    /// Zipf requests. A tenth of the requests is for a new object, which is requested once more soon after, and never
    /// again: a page and its reload, two clients of one message.
    static func pairs(_ count: Int, objects: Int, seed: UInt64) -> Trace {
        var generator = SeededGenerator(seed: seed)
        var draw = ZipfDraw(objects: objects, exponent: 0.9)
        var requests: [Int] = []
        var awaited: Int?
        var fresh = objects
        while requests.count < count {
            guard generator.next() % 100 < 10 else { requests.append(draw.next(&generator)); continue }
            fresh += 1
            requests.append(fresh)
            if let awaited { requests.append(awaited) }
            awaited = fresh
        }
        return Trace(name: "zipf 0.9 with pairs", requests: Array(requests.prefix(count)))
    }

    /// A trace of the same objects over and over: the worst case for LRU.
    static func loop(_ count: Int, objects: Int) -> Trace {
        Trace(name: "loop", requests: (0..<count).map { $0 % objects })
    }

    /// Zipf requests whose ranking drifts, a loop and scans together.
    static func mixed(_ count: Int, objects: Int, seed: UInt64) -> Trace {
        var generator = SeededGenerator(seed: seed)
        var draw = ZipfDraw(objects: objects, exponent: 0.8)
        var fresh = 10 * objects
        var looped = 0
        let requests = (0..<count).map { number -> Int in
            switch generator.next() % 10 {
            case 0: fresh += 1; return fresh
            case 1: looped = (looped + 1) % (objects / 10); return 5 * objects + looped
            // After every tenth of the trace, the ranking moves on by a hundredth of the objects.
            default: return draw.next(&generator) + (number * 10 / count) * (objects / 100)
            }
        }
        return Trace(name: "mixed, drifting", requests: requests)
    }

    /// News: a crowd of clients requests each item the moment it appears, so that many wait for its one fetch, and a
    /// few clients request it later. All other objects are read once. Before the first hit, only the waiters
    /// distinguish the two kinds.
    static func news(_ count: Int, seed: UInt64) -> Trace {
        var generator = SeededGenerator(seed: seed)
        var requests: [Int] = []
        var waiters: [Int: Int] = [:]
        var recent: [Int] = []
        var fresh = 0
        while requests.count < count {
            fresh += 1
            switch generator.next() % 10 {
            case 0:
                waiters[requests.count] = 3
                recent.append(fresh)
                if recent.count > 400 { recent.removeFirst() }
                requests.append(fresh)
            case 1..<4 where !recent.isEmpty:
                requests.append(recent[Int(generator.next() % UInt64(recent.count))])
            default: requests.append(fresh)
            }
        }
        return Trace(name: "news with waiters", requests: requests, waiters: waiters)
    }
}

/// Draws ranks by Zipf's law.
struct ZipfDraw {
    private let cumulative: [Double]

    init(objects: Int, exponent: Double) {
        var sum = 0.0
        cumulative = (1...objects).map { rank in
            sum += 1 / pow(Double(rank), exponent)
            return sum
        }
    }

    mutating func next(_ generator: inout SeededGenerator) -> Int {
        let point = Double(generator.next() >> 11) / Double(1 << 53) * (cumulative.last ?? 0)
        var (low, high) = (0, cumulative.count - 1)
        while low < high {
            let middle = (low + high) / 2
            if cumulative[middle] < point { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
