import Bytes
import HTTPSemantics
import Libevent
import Testing

@testable import Proxy

/// Of which removed fields the operator was told: once of each, and never without bound.
struct ReportedFieldsTests {
    private static func network(_ text: String) -> PeerNetwork? {
        let bytes = ByteSlice(text)
        return IPAddress(bytes.span).map { PeerNetwork(around: $0) }
    }

    private static func field(_ name: String, _ reason: RemovedField.Reason = .untrusted) -> RemovedField {
        RemovedField(ByteSlice(name), reason)
    }

    private static func tell(
        _ record: inout ReportedFields, _ names: [String], _ peer: String, at seconds: UInt64
    ) -> [String]? {
        record.take(names.map { field($0) }, from: network(peer), at: seconds * 1_000_000_000)?.map { String($0.name) }
    }

    @Test func `each field is reported once for a network, ignoring case`() {
        var record = ReportedFields()
        #expect(Self.tell(&record, ["X-A", "x-a", "X-B"], "192.0.2.1", at: 1) == ["X-A", "X-B"])
        #expect(Self.tell(&record, ["X-B", "X-C"], "192.0.2.255", at: 2) == ["X-C"])
        #expect(Self.tell(&record, ["X-a", "X-b"], "192.0.2.7", at: 999) == [])
        #expect(Self.tell(&record, ["X-A"], "192.0.3.1", at: 1000) == ["X-A"])
        #expect(Self.tell(&record, ["X-A"], "2001:db8:1:2::3", at: 1001) == ["X-A"])
        #expect(Self.tell(&record, ["X-A"], "2001:db8:1:ffff::3", at: 1002) == [])
        #expect(Self.tell(&record, ["X-A"], "2001:db8:2::3", at: 1003) == ["X-A"])
        // A Unix socket.
        #expect(Self.tell(&record, ["X-A"], "", at: 1004) == ["X-A"])
        #expect(Self.tell(&record, ["X-A"], "", at: 1005) == [])
    }

    @Test func `a field that may not be reported now is reported later`() {
        var record = ReportedFields()
        for number in 0..<ReportedFields.mostPerMinute {
            #expect(Self.tell(&record, ["X-A"], "10.0.\(number).1", at: 1) == ["X-A"])
        }
        #expect(Self.tell(&record, ["X-A"], "10.1.0.1", at: 2) == nil)
        #expect(Self.tell(&record, ["X-A"], "10.0.0.1", at: 2) == [], "told before")
        #expect(Self.tell(&record, ["X-A"], "10.1.0.1", at: 62) == ["X-A"])
    }

    @Test func `the number of fields for a network and the number of networks are limited`() {
        var told = ReportedFields()
        for number in 0..<100 { told.add(Self.field("X-\(number)"), from: Self.network("10.0.0.1")) }
        let isNew = ReportedFields()
        #expect(!isNew.has(Self.field("X-A"), from: Self.network("10.0.0.1")))
        #expect(told.has(Self.field("X-A"), from: Self.network("10.0.0.1")), "enough was told")
        for number in 1...ReportedFields.mostGroups {
            told.add(Self.field("X-A"), from: Self.network("10.\(number / 256).\(number % 256).1"))
        }
        #expect(!told.has(Self.field("X-1"), from: Self.network("10.0.0.1")), "forgotten")
        #expect(told.has(Self.field("x-a"), from: Self.network("10.0.1.1")))
        told.add(Self.field("X-A"), from: Self.network("10.200.0.1"))
        #expect(!told.has(Self.field("x-a"), from: Self.network("10.0.1.1")), "forgotten")
        #expect(told.has(Self.field("x-a"), from: Self.network("10.0.2.1")))
    }

    @Test func `names that a client invents take no place of other fields`() {
        var record = ReportedFields()
        let odd = (0..<100).map { Self.field("a_\($0)", .oddName) }
        let told = record.take(odd + [Self.field("X-Forwarded-Proto")], from: Self.network("10.0.0.1"), at: 1)
        #expect(told?.count == ReportedFields.mostOddNames + 1)
        #expect(told?.last.map { String($0.name) } == "X-Forwarded-Proto")
    }

    @Test func `a notice names the fields, the peer and the remedy, and has a limited length`() {
        let fields = (0..<ReportedFields.mostOddNames).map {
            Self.field("X-\($0)-" + String(repeating: "a", count: 500), .oddName)
        }
        let text = ReportedFields.notice(
            of: [Self.field("X-Real-IP"), Self.field("Forwarded", .notInKey)] + fields, from: "10.0.0.1",
            in: Self.network("10.0.0.1"), isTrusted: false)
        for part in [
            "X-Real-IP (", "Forwarded (", "clients.trusted-proxies", "key.headers", "forwarding.odd-field-names",
            "10.0.0.1 ", "10.0.0.0/24",
        ] {
            #expect(text.contains(part), "\(part) in \(text)")
        }
        #expect(text.utf8.count < 1500)
    }
}
