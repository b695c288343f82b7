import Synchronization
import Testing

@testable import Telemetry

/// A number that several tasks raise.
private final class Tally: Sendable {
    let count = Atomic<Int>(0)
}

@Suite struct AccessLogWriterTests {
    static func example(_ number: Int) -> Example { Example { $0.target = Array("/\(number)".utf8) } }

    static func numbers(_ lines: [String]) -> [Int] {
        lines.compactMap { line in
            line.split(separator: " ").first { $0.hasPrefix("/") }.flatMap { Int($0.dropFirst()) }
        }
    }

    @Test func `a drain writes the records of every ring in the order they were appended`() {
        let rings = [LogRing(), LogRing()]
        let sink = MemorySink()
        var writer = AccessLogWriter(rings: rings, format: .combined, sink: sink)
        for number in 0..<1000 { Self.example(number).append(to: rings[number % 2]) }
        let report = writer.drain()
        #expect(report.written == 1000)
        #expect(report.dropped == 0 && report.lost == 0 && report.failure == nil)
        #expect(Self.numbers(sink.lines) == Array(stride(from: 0, to: 1000, by: 2)) + Array(stride(from: 1, to: 1000, by: 2)))
        let again = writer.drain()
        #expect(again.written == 0)
        #expect(sink.lines.count == 1000)
    }

    @Test func `a full ring drops, counts and goes on after the drain`() {
        let ring = LogRing(capacity: 4096)
        let sink = MemorySink()
        var writer = AccessLogWriter(rings: [ring], format: .combined, sink: sink)
        let outcomes = (0..<100).map { Self.example($0).append(to: ring) }
        let kept = outcomes.count { $0 != .dropped }
        #expect(kept > 10 && kept < 50)
        #expect(outcomes.count { $0 == .keptAtMark } == 1)
        #expect(outcomes[kept...].allSatisfy { $0 == .dropped })
        var report = writer.drain()
        #expect(report.written == kept)
        #expect(report.dropped == UInt64(100 - kept))
        Self.example(7).append(to: ring)
        report = writer.drain()
        #expect(report.written == 1 && report.dropped == 0)
        #expect(Self.numbers(sink.lines) == Array(0..<kept) + [7])
    }

    @Test func `a full disk costs lines, is counted, and tears no later line`() {
        let ring = LogRing()
        let sink = MemorySink()
        let status = AccessLogStatus()
        var writer = AccessLogWriter(rings: [ring], format: .json, sink: sink, status: status)
        let line = Example().line(.json)
        // One and a half lines fit, then nothing, then all.
        sink.roomLeft = [line.utf8.count * 3 / 2, 0]
        for _ in 0..<3 { Example().append(to: ring) }
        var report = writer.drain()
        #expect(report.written == 1 && report.lost == 2 && report.failure == 28)
        Example().append(to: ring)
        report = writer.drain()
        #expect(report.written == 0 && report.lost == 1 && report.failure == 28)
        Example().append(to: ring)
        report = writer.drain()
        #expect(report.written == 1 && report.lost == 0 && report.failure == nil)
        #expect(sink.lines.count == 3)
        #expect(sink.lines[0] + "\n" == line)
        #expect(line.hasPrefix(sink.lines[1]))
        #expect(sink.lines[2] + "\n" == line)
        let page = text(PrometheusText.page(status.families()))
        #expect(page.contains("coalesced_log_lines_total{fate=\"written\"} 2\n"))
        #expect(page.contains("coalesced_log_lines_total{fate=\"lost\"} 3\n"))
        #expect(page.contains("coalesced_log_failures_total 2\n"))
    }

    @Test func `a request to reopen is honoured once, before the next lines`() {
        let ring = LogRing()
        let sink = MemorySink()
        let status = AccessLogStatus()
        var writer = AccessLogWriter(rings: [ring], format: .json, sink: sink, status: status)
        status.requestReopen()
        status.requestReopen()
        #expect(sink.reopenings == 0)
        _ = writer.drain()
        _ = writer.drain()
        #expect(sink.reopenings == 1)
    }

    @Test func `a failed reopening is reported and the old file goes on`() {
        let ring = LogRing()
        let sink = MemorySink()
        sink.reopenFailure = 13
        let status = AccessLogStatus()
        var writer = AccessLogWriter(rings: [ring], format: .json, sink: sink, status: status)
        status.requestReopen()
        Example().append(to: ring)
        let report = writer.drain()
        #expect(report.failure == 13)
        #expect(report.written == 1)
        #expect(sink.lines.count == 1)
    }

    @Test func `loops and writer at work at once lose no line and tear none`() async {
        let loops = 3, each = 4000
        let rings = (0..<loops).map { _ in LogRing(capacity: 8 << 20) }
        let finished = Tally()
        let lines: [String] = await withTaskGroup(of: [String].self) { group in
            for loop in 0..<loops {
                group.addTask {
                    for number in 0..<each { Self.example(loop * each + number).append(to: rings[loop]) }
                    finished.count.wrappingAdd(1, ordering: .releasing)
                    return []
                }
            }
            group.addTask {
                let sink = MemorySink()
                var writer = AccessLogWriter(rings: rings, format: .combined, sink: sink)
                while finished.count.load(ordering: .acquiring) < loops {
                    _ = writer.drain()
                    await Task.yield()
                }
                _ = writer.drain()
                return sink.lines
            }
            return await group.reduce(into: []) { $0 += $1 }
        }
        #expect(lines.allSatisfy { $0.hasPrefix("192.0.2.1 - - [") && $0.hasSuffix(" upstream_time=-") })
        let numbers = Self.numbers(lines)
        #expect(numbers.count == loops * each)
        #expect(Set(numbers) == Set(0..<loops * each))
        for loop in 0..<loops {
            let own = numbers.filter { $0 / each == loop }
            #expect(own == own.sorted())
        }
    }
}
