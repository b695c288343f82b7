import Bytes
import Testing

@testable import Telemetry

@Suite struct AccessLogDatesTests {
    @Test(
        arguments: [
            (0, "[01/Jan/1970:00:00:00 +0000]", "1970-01-01T00:00:00.000Z"),
            (-1, "[31/Dec/1969:23:59:59 +0000]", "1969-12-31T23:59:59.999Z"),
            (784_111_777_000, "[06/Nov/1994:08:49:37 +0000]", "1994-11-06T08:49:37.000Z"),
            (951_782_400_007, "[29/Feb/2000:00:00:00 +0000]", "2000-02-29T00:00:00.007Z"),
            (951_868_799_999, "[29/Feb/2000:23:59:59 +0000]", "2000-02-29T23:59:59.999Z"),
            (951_868_800_000, "[01/Mar/2000:00:00:00 +0000]", "2000-03-01T00:00:00.000Z"),
            (1_795_238_204_123, "[21/Nov/2026:05:16:44 +0000]", "2026-11-21T05:16:44.123Z"),
            (4_107_542_400_000, "[01/Mar/2100:00:00:00 +0000]", "2100-03-01T00:00:00.000Z"),
            (253_402_300_799_999, "[31/Dec/9999:23:59:59 +0000]", "9999-12-31T23:59:59.999Z"),
        ] as [(Int64, String, String)])
    func `a moment is written in both formats`(milliseconds: Int64, combined: String, iso: String) {
        let output = ByteBuffer(capacity: 64)
        var dates = AccessLogDates(format: .combined)
        dates.append(milliseconds, to: output)
        #expect(text(output) == combined)
        output.removeAll()
        dates = AccessLogDates(format: .json)
        dates.append(milliseconds, to: output)
        #expect(text(output) == iso)
    }

    @Test func `the cached second is not used after its end`() {
        var dates = AccessLogDates(format: .json)
        let output = ByteBuffer(capacity: 64)
        for milliseconds in [1000, 1999, 2000, 1001] as [Int64] { dates.append(milliseconds, to: output) }
        #expect(
            text(output) == """
                1970-01-01T00:00:01.000Z1970-01-01T00:00:01.999Z1970-01-01T00:00:02.000Z1970-01-01T00:00:01.001Z
                """)
    }
}
