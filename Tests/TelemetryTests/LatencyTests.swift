import Testing

@testable import Telemetry

@Suite struct LatencyTests {
    @Test(
        arguments: [
            (.hit, .hit), (.stale, .hit), (.miss, .miss), (.revalidated, .miss), (.pass, .pass),
            (.synthetic, .synthetic), (.refused, nil),
        ] as [(Verdict, LatencyClass?)])
    func `a verdict is recorded under its class`(verdict: Verdict, expected: LatencyClass?) {
        let recorder = LatencyRecorder()
        recorder.record(verdict, firstByte: 1000, total: 2000)
        let snapshot = recorder.snapshot()
        for latencyClass in LatencyClass.allCases {
            for measure in LatencyMeasure.allCases {
                #expect(snapshot[measure, latencyClass].count == (latencyClass == expected ? 1 : 0))
            }
        }
    }

    @Test func `a snapshot does not change while recording goes on`() {
        let recorder = LatencyRecorder()
        recorder.record(.hit, firstByte: 1000, total: 2000)
        let before = recorder.snapshot()
        recorder.record(.hit, firstByte: 1000, total: 2000)
        #expect(before[.total, .hit].count == 1)
        #expect(recorder.snapshot()[.total, .hit].count == 2)
    }

    @Test func `snapshots of several loops merge into one`() {
        let loops = [LatencyRecorder(), LatencyRecorder()]
        loops[0].record(.miss, firstByte: 1_000_000, total: 5_000_000)
        loops[1].record(.miss, firstByte: 2_000_000, total: 80_000_000)
        var merged = LatencySnapshot()
        for loop in loops { merged.merge(loop.snapshot()) }
        #expect(merged[.total, .miss].count == 2)
        #expect(merged[.total, .miss].sum == 85_000_000)
        #expect(merged[.total, .miss].count(upTo: 10_000_000) == 1)
        #expect(merged[.firstByte, .miss].count(upTo: 10_000_000) == 2)
    }

    @Test(arguments: [0, 1, 999, 1_500_000, 3_600_000_000_000, UInt64.max])
    func `every duration is counted, however short or long`(nanoseconds: UInt64) {
        let recorder = LatencyRecorder()
        recorder.record(.pass, firstByte: nanoseconds, total: nanoseconds)
        let distribution = recorder.snapshot()[.total, .pass]
        #expect(distribution.count == 1)
        #expect(distribution.count(upTo: .max) == 1)
    }

    @Test func `the count up to a duration is right within one per cent of the duration`() {
        let recorder = LatencyRecorder()
        for step in 1...1000 as ClosedRange<UInt64> { recorder.record(.hit, firstByte: 0, total: step * 1_000_000) }
        let distribution = recorder.snapshot()[.total, .hit]
        for milliseconds in [1, 10, 500, 990, 1000] as [UInt64] {
            let count = distribution.count(upTo: milliseconds * 1_000_000)
            #expect(count >= milliseconds && Double(count) <= Double(milliseconds) * 1.01)
        }
    }

    @Test func `every duration is counted in the bucket for its length`() {
        // Around each power of two, where the buckets change their width.
        for exponent in 10..<41 as Range<UInt64> {
            for value in [1 << exponent - 1, 1 << exponent, 1 << exponent + 1 << (exponent - 2) + 1025] as [UInt64] {
                let recorder = LatencyRecorder()
                recorder.record(.pass, firstByte: 0, total: value)
                let distribution = recorder.snapshot()[.total, .pass]
                #expect(distribution.count(upTo: value) == 1)
                let below = value - value / 100
                if below >> 10 < value >> 10 { #expect(distribution.count(upTo: below) == 0, "\(value)") }
            }
        }
    }
}
