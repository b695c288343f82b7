import Testing

@testable import Bytes

@Suite struct DurationHistogramTests {
    @Test func `a duration is in the bucket of the first bound that it does not exceed`() {
        let histogram = DurationHistogram()
        for (index, bound) in DurationCounts.bounds.enumerated() {
            histogram.add(nanoseconds: bound)
            histogram.add(nanoseconds: bound + 1)
            #expect(histogram.read().buckets[index] == (index == 0 ? 1 : 2))
        }
        #expect(histogram.read().buckets.last == 1)
        histogram.add(nanoseconds: 0)
        #expect(histogram.read().buckets[0] == 2)
    }

    @Test func `a sum is exact, and sums of several threads add up`() {
        let one = DurationHistogram(), other = DurationHistogram()
        one.add(nanoseconds: 3)
        one.add(nanoseconds: 250_000)
        other.add(nanoseconds: 70_000_000_000)
        var sum = one.read()
        sum.add(other.read())
        #expect(sum.sum == 70_000_250_003 && sum.count == 3)
        #expect(sum.upToBounds == [1] + Array(repeating: 2, count: 17) + [3])
        #expect(one.read().count == 2)
    }

    @Test func `the cumulative counts agree with the buckets`() {
        let histogram = DurationHistogram()
        for nanoseconds in [1, 1, 300_000, 2_000_000, 61_000_000_000] as [UInt64] {
            histogram.add(nanoseconds: nanoseconds)
        }
        let counts = histogram.read()
        #expect(
            DurationCounts(upToBounds: Array(counts.upToBounds.dropLast()), count: counts.count, sum: counts.sum)
                == counts)
    }
}
