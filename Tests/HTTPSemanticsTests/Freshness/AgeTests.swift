import HTTPSemantics
import Testing

/// RFC 9111 §4.2.3, §5.1: how old a response is.
struct AgeTests {
    static let initial: [Row<UInt32>] = [
        Row("§4.2.3 nothing known", "", 0),
        Row("§4.2.3 Age", "Age: 7", 7),
        Row("§5.1 zero", "Age: 0", 0),
        Row("§5.1 leading zeroes", "Age: 007", 7),
        Row("§5.1 the first of a list", "Age: 7, 10", 7),
        Row("§5.1 the first of two lines", "Age: 7\nAge: 10", 7),
        Row("§5.1 the first though the second is wrong", "Age: 7, foo", 7),
        Row("§5.1 a wrong first is ignored", "Age: foo, 7", 0),
        Row("§5.1 negative is ignored", "Age: -7", 0),
        Row("§5.1 a sign is ignored", "Age: +7", 0),
        Row("§5.1 a fraction is ignored", "Age: 7.0", 0),
        Row("§5.1 letters are ignored", "Age: 7a", 0),
        Row("§5.1 a parameter is ignored", "Age: 7;foo=bar", 0),
        Row("§5.1 quotes are ignored", "Age: \"7\"", 0),
        Row("§5.1 empty is ignored", "Age:", 0),
        Row("§1.2.2 2^31", "Age: 2147483648", 2_147_483_648),
        Row("§1.2.2 more than 2^31 is 2^31", "Age: 99999999999", 2_147_483_648),
        Row("§1.2.2 2^64 does not wrap", "Age: 18446744073709551617", 2_147_483_648),
        Row("§4.2.3 apparent age", "Date: {-30}", 30),
        Row("§4.2.3 the larger of both: apparent", "Date: {-30}\nAge: 10", 30),
        Row("§4.2.3 the larger of both: corrected", "Date: {-30}\nAge: 40", 40),
        Row("§4.2.3 a date ahead counts as now", "Date: {500}", 0),
        Row("§4.2.3 a date ahead leaves Age", "Date: {500}\nAge: 10", 10),
        Row("§4.2.3 a wrong date is none", "Date: yesterday\nAge: 10", 10),
        Row("§4.2.3 one second is the clocks' rounding", "Date: {-1}", 0),
        Row("§4.2.3 a date long ago", "Date: Mon, 01 Jan 0001 00:00:00 GMT", 2_147_483_648),
    ]

    @Test(arguments: initial)
    func `the age at arrival is the larger of Age and the difference to Date`(row: Row<UInt32>) {
        #expect(facts(row.fields).age(at: arrival) == row.expected)
    }

    static let elapsed: [(String, delay: Double, later: Double, age: UInt32)] = [
        ("", 0, 0, 0), ("", 0, 0.999, 0), ("", 0, 1, 1), ("", 0, 10, 10),
        ("", 3, 0, 3), ("", 3, 10, 13), ("", 0.6, 0.5, 1), ("", 0.4, 0.5, 0),
        ("Age: 7", 0, 10, 17), ("Age: 7", 3, 10, 20),
        ("Date: {-30}", 3, 10, 40), ("Date: {-30}\nAge: 29", 3, 10, 42),
        ("Age: 2147483648", 0, 10, 2_147_483_648), ("Age: 2147483647", 5, 5, 2_147_483_648),
    ]

    @Test(arguments: elapsed)
    func `response delay and resident time add to the age`(fields: String, delay: Double, later: Double, age: UInt32) {
        // §4.2.3: corrected_initial_age = age_value + response_delay; current_age = that + resident_time
        #expect(facts(fields, delay: delay).age(at: arrival.after(later)) == age)
    }

    @Test func `a step of the wall clock does not change the age`() {
        let response = facts("Cache-Control: max-age=60")
        let forward = Moment(monotonic: arrival.monotonic + 1_000_000_000, wall: arrival.wall + 86_400)
        let back = Moment(monotonic: arrival.monotonic + 61_000_000_000, wall: arrival.wall - 86_400)
        #expect(response.age(at: forward) == 1)
        #expect(response.isFresh(at: forward))
        #expect(response.age(at: back) == 61)
        #expect(!response.isFresh(at: back))
    }

    @Test func `the age before the arrival of a response is zero`() {
        #expect(facts("").age(at: arrival.after(-5)) == 0)
    }

    @Test func `the operator can ignore a wrong origin clock in the age`() {
        var policy = CachingPolicy()
        policy.trustsDate = false
        #expect(facts("Date: {-300}\nAge: 4", policy: policy).age(at: arrival) == 4)
    }

    @Test func `the time to live counts down through zero`() {
        // RFC 9211 §2.5
        let response = facts("Cache-Control: max-age=60\nAge: 50")
        #expect(response.timeToLive(at: arrival) == 10)
        #expect(response.timeToLive(at: arrival.after(15)) == -5)
    }

    @Test func `age and lifetime do not overflow`() {
        let response = facts("Cache-Control: max-age=99999999999\nAge: 99999999999", delay: 100)
        #expect(response.age(at: arrival.after(100)) == 2_147_483_648)
        #expect(response.timeToLive(at: arrival.after(100)) == -200)
        #expect(!response.isFresh(at: arrival.after(100)))
    }
}
