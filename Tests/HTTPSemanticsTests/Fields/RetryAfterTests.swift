import HTTPSemantics
import Testing

/// RFC 9110 §10.2.3.
struct RetryAfterTests {
    @Test(
        arguments: [
            ("120", 120), ("0", 0), ("Fri, 31 Dec 1999 23:59:59 GMT", 100), ("Fri, 31 Dec 1999 23:58:00 GMT", 0),
            ("soon", nil), ("-1", nil), ("99999999999999999999", 2_147_483_648),
        ] as [(String, Int64?)])
    func `seconds or a date say how long to wait`(value: String, seconds: Int64?) {
        let fields = head("Retry-After: \(value)")
        let wait = fields.view.retryAfter(at: 946_684_699)
        #expect(wait == seconds)
    }

    @Test func `without the field nothing is said`() {
        let fields = head("Age: 3")
        let wait = fields.view.retryAfter(at: 0)
        #expect(wait == nil)
    }
}
