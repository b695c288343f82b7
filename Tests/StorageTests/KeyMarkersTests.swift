import Bytes
import HTTPSemantics
import Testing

@testable import Storage

/// The table above `KeyMarkers`.
@Suite struct KeyMarkersTests {
    /// One of each kind, in the order in which one has the word before the next; and two whose reason allows to
    /// validate.
    static let reasons: [NotSharedReason] = [
        .search, .prohibited(.private), .noCache, .mustRevalidate, .prohibited(.authorization), .range, .outgrown,
        .unlike,
    ]

    @Test func `the marker of a response over the size limit holds until one is stored`() {
        var markers = Self.markers([.outgrown])
        #expect(markers.outgrows(at: Self.moment(99)) && !markers.outgrows(at: Self.moment(100)))
        let advice = markers.advice(at: Self.moment(99), hasAuthorization: true)
        #expect(advice == .share && !markers.separatesRequests(at: Self.moment(99)))
        let response = Sample.response(body: GrowingBody(lending: .empty)).facts
        markers.forget(after: response, keepsWhole: false)
        #expect(markers.outgrows(at: Self.moment(99)))
        markers.forget(after: response, keepsWhole: true)
        #expect(markers.isEmpty)
    }

    private static func moment(_ nanosecond: Int64) -> Moment { Moment(monotonic: nanosecond, wall: 0) }

    /// Until 100.
    private static func markers(_ reasons: [NotSharedReason]) -> KeyMarkers {
        var markers = KeyMarkers()
        for reason in reasons { markers.set(reason, until: 100, at: moment(0)) }
        return markers
    }

    private static func advice(_ reason: NotSharedReason, hasAuthorization: Bool) -> KeyMarkers.Advice {
        switch reason {
        case .search, .prohibited(.private): .pass
        case .noCache, .mustRevalidate: .validateAlone
        case .prohibited(.authorization): hasAuthorization ? .validateAlone : .share
        case .range: .askForPart
        default: .share
        }
    }

    @Test(arguments: reasons, [true, false])
    func `a single marker decides how a request is treated and whether it is shared`(
        _ reason: NotSharedReason, _ hasAuthorization: Bool
    ) {
        let markers = Self.markers([reason])
        let advice = markers.advice(at: Self.moment(99), hasAuthorization: hasAuthorization)
        #expect(advice == Self.advice(reason, hasAuthorization: hasAuthorization))
        #expect(markers.separatesRequests(at: Self.moment(99)) == (reason == .unlike))
        #expect(markers.leadsToOwnURL(at: Self.moment(99)) == (reason == .search))
    }

    /// Where the first of them has nothing to say to a request, the other has the word.
    @Test(arguments: reasons.indices, reasons.indices)
    func `markers of two kinds both hold, whichever came first, and one decides`(_ one: Int, _ other: Int) {
        let (first, second) = (Self.reasons[min(one, other)], Self.reasons[max(one, other)])
        // Two of one kind: see below.
        if (1...3).contains(one), (1...3).contains(other), one != other { return }
        let markers = Self.markers([Self.reasons[one], Self.reasons[other]])
        #expect(markers.separatesRequests(at: Self.moment(0)) == (second == .unlike))
        #expect(markers.leadsToOwnURL(at: Self.moment(0)) == (first == .search))
        for hasAuthorization in [true, false] {
            let (expected, next) = (
                Self.advice(first, hasAuthorization: hasAuthorization),
                Self.advice(second, hasAuthorization: hasAuthorization)
            )
            let advice = markers.advice(at: Self.moment(0), hasAuthorization: hasAuthorization)
            #expect(advice == (expected == .share ? next : expected))
        }
    }

    @Test func `markers of all kinds hold at once`() {
        let markers = Self.markers(Self.reasons)
        #expect(markers.charge == KeyMarkers.mostCharge)
        #expect(markers.separatesRequests(at: Self.moment(0)) && markers.leadsToOwnURL(at: Self.moment(0)))
    }

    @Test func `the latest marker of a kind counts, with its reason and its time`() {
        var markers = Self.markers([.prohibited(.private)])
        markers.set(.noCache, until: 50, at: Self.moment(0))
        #expect(
            markers
                == {
                    var only = KeyMarkers()
                    only.set(.noCache, until: 50, at: Self.moment(0))
                    return only
                }())
        #expect(markers.advice(at: Self.moment(49), hasAuthorization: false) == .validateAlone)
        #expect(markers.advice(at: Self.moment(50), hasAuthorization: false) == .share)
    }

    @Test(arguments: reasons) func `a marker holds until its time, and any other replaces it afterwards`(
        _ reason: NotSharedReason
    ) {
        var markers = Self.markers([reason])
        #expect(markers.advice(at: Self.moment(100), hasAuthorization: true) == .share)
        #expect(!markers.separatesRequests(at: Self.moment(100)) && !markers.leadsToOwnURL(at: Self.moment(100)))
        markers.set(reason == .range ? .unlike : .range, until: 200, at: Self.moment(100))
        #expect(markers.charge == Self.markers([.unlike]).charge)
    }

    @Test func `a marker whose time is already over is not kept`() {
        var markers = Self.markers([.noCache])
        markers.set(.prohibited(.private), until: 50, at: Self.moment(50))
        #expect(markers.isEmpty)
    }

    /// What stays of all kinds after a response that several may have.
    @Test(arguments: [
        ("max-age=60", true, [NotSharedReason.prohibited(.authorization)]),
        ("max-age=60", false, [.prohibited(.authorization), .range]),
        ("public, max-age=60", true, []),
        ("public, max-age=60", false, [.range]),
        ("no-cache", true, [.prohibited(.authorization), .unlike]),
        ("no-cache", false, [.prohibited(.authorization), .range, .unlike]),
        ("no-cache, must-revalidate", true, [.unlike]),
    ])
    func `a response for several clients removes the markers that it contradicts`(
        _ cacheControl: String, _ keepsWhole: Bool, _ rest: [NotSharedReason]
    ) {
        var markers = Self.markers([.search, .prohibited(.private), .prohibited(.authorization), .range, .unlike])
        let facts = Sample.response(body: GrowingBody(lending: .empty), cacheControl, responseTime: 99).facts
        markers.forget(after: facts, keepsWhole: keepsWhole)
        #expect(markers == Self.markers(rest))
        #expect(markers.stand(after: facts, keepsWhole: keepsWhole))
        let later = Sample.response(body: GrowingBody(lending: .empty), cacheControl, responseTime: 100).facts
        markers.forget(after: later, keepsWhole: keepsWhole)
        #expect(markers.isEmpty)
    }
}
