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

    @Test func `a drain writes the records of every loop in the order of appending`() {
        let queues = [AccessLogQueue(), AccessLogQueue()]
        let loops = queues.map { LogLoop($0) }
        let sink = MemorySink()
        var writer = AccessLogWriter(queues: queues, format: .combined, sink: sink)
        for number in 0..<1000 { Self.example(number).append(to: loops[number % 2]) }
        #expect(writer.drain().written == 0)
        for loop in loops {
            let isTaken = loop.handOver()
            #expect(isTaken && loop.isEmpty)
        }
        let report = writer.drain()
        #expect(report.written == 1000)
        #expect(report.dropped == 0 && report.lost == 0 && report.failure == nil)
        #expect(
            Self.numbers(sink.lines) == Array(stride(from: 0, to: 1000, by: 2))
                + Array(stride(from: 1, to: 1000, by: 2)))
        let again = writer.drain()
        #expect(again.written == 0)
        #expect(sink.lines.count == 1000)
    }

    @Test func `while a batch waits, the next one fills, drops and counts, and goes on after the drain`() {
        let queue = AccessLogQueue(capacity: 4096)
        let loop = LogLoop(queue)
        let sink = MemorySink()
        var writer = AccessLogWriter(queues: [queue], format: .combined, sink: sink)
        Self.example(0).append(to: loop)
        let isFirstTaken = loop.handOver()
        let outcomes = (1...100).map { Self.example($0).append(to: loop) }
        let isSecondTaken = loop.handOver()
        #expect(isFirstTaken && !isSecondTaken)
        let kept = outcomes.count { $0 }
        #expect(kept > 10 && kept < 60)
        #expect(outcomes[kept...].allSatisfy { !$0 })
        var report = writer.drain()
        #expect(report.written == 1 && report.dropped == 0)
        let isTakenNow = loop.handOver()
        report = writer.drain()
        #expect(isTakenNow && report.written == kept)
        #expect(report.dropped == UInt64(100 - kept))
        Self.example(200).append(to: loop)
        _ = loop.handOver()
        report = writer.drain()
        #expect(report.written == 1 && report.dropped == 0)
        #expect(Self.numbers(sink.lines) == Array(0...kept) + [200])
    }

    @Test func `the records that a loop leaves at its end are always taken, in order`() {
        let queue = AccessLogQueue(capacity: 4096)
        let loop = LogLoop(queue)
        for number in 0..<4 {
            Self.example(number).append(to: loop)
            let isTaken = loop.handOver(isLast: number > 0)
            #expect(isTaken)
        }
        let sink = MemorySink()
        var writer = AccessLogWriter(queues: [queue], format: .combined, sink: sink)
        let report = writer.drain(isLast: true)
        #expect(report.written == 4)
        #expect(Self.numbers(sink.lines) == [0, 1, 2, 3])
    }

    @Test func `a loop as fast as the sink delays neither the others nor a reopening`() {
        let queues = [AccessLogQueue(), AccessLogQueue()]
        let loops = queues.map { LogLoop($0) }
        let sink = MemorySink()
        // More than is written at a time.
        let each = 2 * AccessLogSettings.flushSize / Self.example(0).line(.combined).utf8.count
        var number = 0
        func handOver(to loop: LogLoop) {
            for _ in 0..<each { Self.example(number).append(to: loop) }
            number += 1
            _ = loop.handOver()
        }
        sink.whenWritten = { if number < 100 { handOver(to: loops[0]) } }
        var writer = AccessLogWriter(queues: queues, format: .combined, sink: sink)
        for loop in loops { handOver(to: loop) }
        let report = writer.drain()
        #expect(report.written == 2 * each)
        #expect(Set(Self.numbers(sink.lines)) == [0, 1])
        let next = writer.drain()
        #expect(next.written > 0 && Set(Self.numbers(sink.lines)).contains(2))
    }

    @Test func `a full disk costs lines, is counted, and tears no later line`() {
        let queue = AccessLogQueue()
        let loop = LogLoop(queue)
        let sink = MemorySink()
        let status = AccessLogStatus()
        var writer = AccessLogWriter(queues: [queue], format: .json, sink: sink, status: status)
        let line = Example().line(.json)
        // One and a half lines fit, then nothing, then all.
        sink.roomLeft = [line.utf8.count * 3 / 2, 0]
        for _ in 0..<3 { Example().append(to: loop) }
        _ = loop.handOver()
        var report = writer.drain()
        #expect(report.written == 1 && report.lost == 2 && report.failure == 28)
        Example().append(to: loop)
        _ = loop.handOver()
        report = writer.drain()
        #expect(report.written == 0 && report.lost == 1 && report.failure == 28)
        Example().append(to: loop)
        _ = loop.handOver()
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
        let queue = AccessLogQueue()
        let sink = MemorySink()
        let status = AccessLogStatus()
        var writer = AccessLogWriter(queues: [queue], format: .json, sink: sink, status: status)
        status.requestReopen()
        status.requestReopen()
        #expect(sink.reopenings == 0)
        _ = writer.drain()
        _ = writer.drain()
        #expect(sink.reopenings == 1)
    }

    @Test func `a file that replaces one with a torn line begins with a whole line`() {
        let (queue, sink) = (AccessLogQueue(capacity: 1 << 16), MemorySink())
        let loop = LogLoop(queue)
        let status = AccessLogStatus()
        var writer = AccessLogWriter(queues: [queue], format: .json, sink: sink, status: status)
        sink.roomLeft = [5]
        Example().append(to: loop)
        _ = loop.handOver()
        _ = writer.drain()
        #expect(sink.bytes.count == 5)
        sink.isRotated = true
        status.requestReopen()
        Example().append(to: loop)
        _ = loop.handOver()
        let report = writer.drain()
        #expect(report.written == 1 && report.lost == 0)
        #expect(String(decoding: sink.bytes, as: UTF8.self) == Example().line(.json))
    }

    @Test func `a failed reopening is reported, and the old file is used further`() {
        let queue = AccessLogQueue()
        let loop = LogLoop(queue)
        let sink = MemorySink()
        sink.reopenFailure = 13
        let status = AccessLogStatus()
        var writer = AccessLogWriter(queues: [queue], format: .json, sink: sink, status: status)
        status.requestReopen()
        Example().append(to: loop)
        _ = loop.handOver()
        let report = writer.drain()
        #expect(report.reopenFailure == 13 && report.failure == nil)
        #expect(report.written == 1)
        #expect(sink.lines.count == 1)
    }

    @Test func `simultaneous loops and writer lose no line and tear none`() async {
        let loops = 3, each = 4000
        let queues = (0..<loops).map { _ in AccessLogQueue(capacity: 8 << 20) }
        let finished = Tally()
        let lines: [String] = await withTaskGroup(of: [String].self) { group in
            for index in 0..<loops {
                group.addTask {
                    let loop = LogLoop(queues[index])
                    for number in 0..<each {
                        Self.example(index * each + number).append(to: loop)
                        if number % 10 == 0 { _ = loop.handOver() }
                    }
                    _ = loop.handOver(isLast: true)
                    finished.count.wrappingAdd(1, ordering: .releasing)
                    return []
                }
            }
            group.addTask {
                let sink = MemorySink()
                var writer = AccessLogWriter(queues: queues, format: .combined, sink: sink)
                while finished.count.load(ordering: .acquiring) < loops {
                    _ = writer.drain()
                    await Task.yield()
                }
                _ = writer.drain(isLast: true)
                return sink.lines
            }
            return await group.reduce(into: []) { $0 += $1 }
        }
        #expect(lines.allSatisfy { $0.hasPrefix("192.0.2.1 - - [") && $0.hasSuffix(" upstream_time=-") })
        let numbers = Self.numbers(lines)
        #expect(numbers.count == loops * each)
        #expect(Set(numbers) == Set(0..<loops * each))
        for index in 0..<loops {
            let own = numbers.filter { $0 / each == index }
            #expect(own == own.sorted())
        }
    }
}
