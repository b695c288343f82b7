import Bytes
import Testing

@testable import TLS

struct TicketKeysTests {
    private func file(_ keys: [UInt8]) -> NamedFile {
        var file = NamedFile(path: "/keys")
        let bytes = keys.flatMap { Array(repeating: $0, count: TicketKeys.keySize) }
        file.content = ByteSlice(copying: bytes.span)
        return file
    }

    @Test func `a key opens tickets for one period after its own`() throws {
        let (keys, period) = (TicketKeys(), TicketKeys.period)
        let first = try #require(keys.current(at: 100))
        #expect(keys.current(at: 100 + period - 1) == first)
        #expect(keys.key(named: first.name, at: 100)?.isOld == false)
        let second = try #require(keys.current(at: 100 + period))
        #expect(second != first)
        #expect(keys.key(named: first.name, at: 100 + period)?.isOld == true)
        #expect(keys.key(named: first.name, at: 100 + 2 * period) == nil)
    }

    @Test func `a key that nobody asked for in two periods opens no tickets`() throws {
        let keys = TicketKeys()
        let first = try #require(keys.current(at: 0))
        #expect(keys.key(named: first.name, at: 2 * TicketKeys.period) == nil)
    }

    @Test func `the first key of a file encrypts, and all of them open tickets`() throws {
        let keys = try TicketKeys(file([2, 1]))
        #expect(keys.current(at: 0)?.name == Array(repeating: 2, count: 16))
        #expect(keys.key(named: Array(repeating: 1, count: 16), at: 0)?.isOld == true)
        #expect(keys.key(named: Array(repeating: 3, count: 16), at: 0) == nil)
    }

    @Test(arguments: [0, 79, 81, 320])
    func `a file of another size is refused`(count: Int) {
        var file = NamedFile(path: "/keys")
        let bytes = [UInt8](repeating: 7, count: count)
        file.content = ByteSlice(copying: bytes.span)
        #expect(throws: TLSSettingsError.self) { try TicketKeys(file) }
    }
}
