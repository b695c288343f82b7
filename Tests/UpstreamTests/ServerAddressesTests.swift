import Libevent
import Testing

@testable import Upstream

/// Which address of a server is next.
@Suite struct ServerAddressesTests {
    private static let cooldown: Int64 = 100

    private func ipv4(_ last: UInt8) -> SocketAddress { .ipv4(IPv4Address(192, 0, 2, last), port: 80) }
    private func ipv6(_ last: UInt64) -> SocketAddress {
        .ipv6(IPv6Address(high: 0x2001_0db8 << 32, low: last), port: 80)
    }

    private func addresses(_ found: SocketAddress..., startingAt first: Int = 0, maxFailures: Int = 2)
        -> ServerAddresses
    {
        var addresses = ServerAddresses(startingAt: first, maxFailures: maxFailures, cooldown: Self.cooldown)
        addresses.change(to: found)
        return addresses
    }

    private func turns(_ count: Int, of addresses: inout ServerAddresses, at now: Int64 = 0) -> [SocketAddress?] {
        (0..<count).map { _ in addresses.next(at: now)?.address }
    }

    @Test func `addresses are used in turn with alternating families, and each loop begins with another`() {
        var some = addresses(ipv4(1), ipv4(2), ipv6(1), startingAt: 1)
        let seen = turns(4, of: &some)
        #expect(seen == [ipv6(1), ipv4(2), ipv4(1), ipv6(1)])
    }

    @Test func `a single address, or the two of the loopback, leaves no choice`() {
        let loopback: SocketAddress = .ipv4(.loopback, port: 80)
        for var some in [
            addresses(), addresses(ipv4(1)), addresses(loopback, .ipv6(.loopback, port: 80)),
        ] {
            let turn = some.next(at: 0)
            #expect(turn == nil)
        }
        var pair = addresses(loopback, .ipv4(IPv4Address(127, 0, 0, 2), port: 80))
        let turn = pair.next(at: 0)
        #expect(turn?.address == loopback)
    }

    @Test
    func `an unreachable address is not used until its cool-down is over and one request tries it`() {
        var some = addresses(ipv4(1), ipv4(2))
        let isNews = some.failed(ipv4(1), isCertain: true, at: 10)
        let isNewsAgain = some.failed(ipv4(1), isCertain: true, at: 20)
        #expect(isNews && !isNewsAgain)
        let meanwhile = turns(3, of: &some, at: 119)
        #expect(meanwhile == [ipv4(2), ipv4(2), ipv4(2)])
        let tries = [some.next(at: 120), some.next(at: 120)]
        #expect(tries == [.init(address: ipv4(1), tryBegan: 120), .init(address: ipv4(2), tryBegan: nil)])
        some.undecided(ipv4(1), tryBegan: 120, at: 125)
        let again = [some.next(at: 129), some.next(at: 130)]
        #expect(again == [.init(address: ipv4(2), tryBegan: nil), .init(address: ipv4(1), tryBegan: 130)])
        let isBack = some.succeeded(ipv4(1), at: 131)
        let after = turns(2, of: &some, at: 131)
        #expect(isBack && Set(after) == [ipv4(1), ipv4(2)])
    }

    @Test func `an address whose exchanges fail is not used after a number of failures in a row`() {
        var some = addresses(ipv4(1), ipv4(2))
        let first = some.failed(ipv4(1), isCertain: false, at: 0)
        _ = some.succeeded(ipv4(1), at: 1)
        let second = some.failed(ipv4(1), isCertain: false, at: 2)
        let third = some.failed(ipv4(1), isCertain: false, at: 3)
        #expect([first, second, third] == [false, false, true])
    }

    @Test func `a request tries all addresses from its turn on, the failing ones last`() {
        var some = addresses(ipv4(1), ipv4(2), ipv4(3), ipv4(4))
        _ = some.failed(ipv4(4), isCertain: true, at: 0)
        #expect(some.order(from: ipv4(3), at: 1) == [ipv4(3), ipv4(1), ipv4(2), ipv4(4)])
        #expect(some.order(from: ipv4(3), at: 100) == [ipv4(3), ipv4(4), ipv4(1), ipv4(2)])
    }

    @Test func `addresses that stay when a name changes keep their turn and their state`() {
        var some = addresses(ipv4(1), ipv4(2), ipv4(3))
        _ = some.failed(ipv4(3), isCertain: true, at: 0)
        _ = turns(1, of: &some, at: 1)
        some.change(to: [ipv4(5), ipv4(3), ipv4(2)])
        #expect(some.all == [ipv4(2), ipv4(3), ipv4(5)])
        let next = turns(3, of: &some, at: 1)
        #expect(next == [ipv4(2), ipv4(5), ipv4(2)])
        // In another order, as name servers tell them each time, nothing changes.
        some.change(to: [ipv4(3), ipv4(2), ipv4(5)])
        let after = turns(2, of: &some, at: 1)
        #expect(after == [ipv4(5), ipv4(2)])
        // What has gone is known no more.
        some.change(to: [ipv4(2)])
        some.change(to: [ipv4(2), ipv4(3)])
        let new = turns(2, of: &some, at: 1)
        #expect(Set(new) == [ipv4(2), ipv4(3)])
    }
}
