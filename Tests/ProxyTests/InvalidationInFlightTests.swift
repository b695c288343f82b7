import Bytes
import Coalescing
import HTTPSemantics
import Libevent
import LoopTesting
import Routing
import Storage
import Testing

@testable import Proxy

/// Responses that were requested before an invalidation of their URL (`SharedState.invalidate`).
@Suite(.timeLimit(.minutes(10))) struct InvalidationInFlightTests {
    /// Kinds of fetches.
    enum Fetched: Sendable, CaseIterable { case shared, alone, part }
    enum Invalidated: Sendable, CaseIterable { case url, matchingKeys, ownOnly, others }

    private static let tagged = "Cache-Control: max-age=60\r\nETag: \"a\""

    private static func proxy(for fetched: Fetched) throws -> TestProxy {
        try TestProxy { settings in
            if fetched == .alone { settings.coalescing.isEnabled = false }
            if fetched == .part { settings.caching.rangeMisses = .part }
        }
    }

    private static func invalidate(_ what: Invalidated, _ key: CacheKey, at proxy: TestProxy) {
        let (shared, writer) = (proxy.worker.context.shared, proxy.worker.context.keys)
        switch what {
        case .url: shared.invalidate(key, using: writer, keepsNotes: true)
        case .matchingKeys: shared.invalidateFetches { $0 == key }
        case .ownOnly:
            let fetches = proxy.worker.context.loopSettings.origins.flatMap(\.fetches.operations)
            shared.invalidate(key, using: writer, keepsNotes: true, except: fetches.first as? FetchOperation)
        case .others:
            for other in 0..<300 {
                let bytes = ByteSlice("http a.example /x?\(other)")
                shared.invalidate(
                    CacheKey(hash: shared.keyHash.hash(bytes.span), bytes: bytes), using: writer, keepsNotes: true)
            }
        }
    }

    /// With the whole of its content outstanding, or the last bytes.
    @Test(arguments: Fetched.allCases, Invalidated.allCases)
    func `a response is not stored after an invalidation of its URL, and is after others`(
        _ fetched: Fetched, _ what: Invalidated
    ) throws {
        for hasHead in [false, true] {
            let proxy = try Self.proxy(for: fetched)
            let client = try proxy.ask("GET /x" + (fetched == .part ? "\nRange: bytes=0-3" : ""))
            let key = try #require(client.transaction?.request.key)
            proxy.run { proxy.origin.requestCount == 1 }
            if hasHead {
                if fetched == .part {
                    proxy.origin.begin(part: "01", from: 0, to: 3, Self.tagged)
                } else {
                    proxy.origin.begin("01", of: 4, Self.tagged)
                }
                proxy.run { client.answer.hasSuffix("01") }
            }
            Self.invalidate(what, key, at: proxy)
            if hasHead {
                proxy.origin.goOn("23")
            } else if fetched == .part {
                proxy.origin.answer(part: "0123", from: 0, Self.tagged)
            } else {
                proxy.origin.answer("0123", Self.tagged)
            }
            proxy.run { client.hasEnded }
            #expect(client.answer.hasSuffix(" 0123"))
            let resource = proxy.worker.context.shared.store.resource(key)
            let isStored = (resource?.count ?? 0) + (resource?.partialResponses.count ?? 0) > 0
            #expect(isStored == (what == .ownOnly || what == .others), "with its head: \(hasHead)")
        }
    }

    /// The operation has ended, so that no invalidation finds it, while the fetch still runs.
    @Test(arguments: [true, false])
    func `what arrived of a cancelled fetch is kept as a part unless its URL is invalidated`(_ isInvalidated: Bool)
        throws
    {
        let proxy = try TestProxy { $0.coalescing.whenLastLeaves = .cancel }
        let client = try proxy.ask()
        let key = try #require(client.transaction?.request.key)
        proxy.run { proxy.origin.requestCount == 1 }
        proxy.origin.begin("01", of: 4, Self.tagged)
        proxy.run { client.answer.hasSuffix("01") }
        client.leave()
        let origins = proxy.worker.context.loopSettings.origins
        #expect(origins.allSatisfy { $0.fetches.operations.isEmpty })
        if isInvalidated { Self.invalidate(.url, key, at: proxy) }
        var isOver = false
        proxy.loop.schedule(after: 0) { [loop = proxy.loop] in
            isOver = true
            loop.stop()
        }
        proxy.run { isOver }
        let parts = proxy.worker.context.shared.store.resource(key)?.partialResponses.count ?? 0
        #expect(parts == (isInvalidated ? 0 : 1))
    }
}
