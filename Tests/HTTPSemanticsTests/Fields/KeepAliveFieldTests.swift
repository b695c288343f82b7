import HTTPSemantics
import Testing

/// What a server says of how long it keeps a connection (RFC 2068 §19.7.1.1).
@Suite struct KeepAliveFieldTests {
    @Test(
        arguments: [
            ("A: b", nil), ("Keep-Alive: timeout=5", 5), ("keep-alive: TIMEOUT=5, max=100", 5),
            ("Keep-Alive: max=100,timeout = 15", 15), ("Keep-Alive: timeout=\"7\"", 7), ("Keep-Alive: timeout=2.5", 2),
            ("Keep-Alive: timeout=0", 0), ("Keep-Alive: timeout=5, max=0", 0), ("Keep-Alive: max=1", nil),
            ("Keep-Alive: timeout=99999999999999999999", .max),
            ("Keep-Alive: timeout=9\nKeep-Alive: timeout=3", 3),
            ("Keep-Alive:", nil), ("Keep-Alive: timeout", nil), ("Keep-Alive: timeout=", nil), ("Keep-Alive: 300", nil),
            ("Keep-Alive: timeout=-1", nil), ("Keep-Alive: timeout=five", nil), ("Keep-Alive: x-timeout=1", nil),
        ] as [(String, UInt32?)])
    func `the timeout is parsed in seconds, and no other value is taken for one`(lines: String, expected: UInt32?) {
        let block = head(lines)
        let seconds = block.view.keepAliveSeconds
        #expect(seconds == expected)
    }
}
