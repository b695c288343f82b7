import Foundation
import Glibc
import Libevent
import Testing

@Suite(.timeLimit(.minutes(10))) struct DescriptorTableTests {
    @Test func `the descriptor limit can be raised to the hard limit`() throws {
        let limit = try raiseFileDescriptorLimit()
        #expect(limit >= 256)
        #expect(try raiseFileDescriptorLimit() == limit)
    }

    @Test func `the kernel's table grows to the requested size, and no further than the limit`() throws {
        let limit = try raiseFileDescriptorLimit()
        // No test opens as many: only this makes the table so large.
        let count = min(limit, 15_000)
        #expect(growDescriptorTable(to: count))
        let size = try tableSize()
        #expect(size >= count)
        #expect(!growDescriptorTable(to: limit + 1))
        #expect(!growDescriptorTable(to: 0))
    }

    /// Descriptors for which this process' table has room.
    private func tableSize() throws -> Int {
        let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
        let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("FDSize:") })
        return try #require(Int(line.dropFirst("FDSize:".count).trimmingCharacters(in: .whitespaces)))
    }
}
