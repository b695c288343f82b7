import HTTPSemantics
import Testing

@testable import Proxy

/// Buffers are lent to the connections that read.
@Suite struct ReadContextTests {
    @Test func `the number of clients with a large content buffer is limited`() {
        let contexts = ReadContexts(limits: .response)
        var lent = (0..<ReadContexts.mostForContent).map { _ in contexts.lendForContent() }
        #expect(lent.allSatisfy { $0.isForContent })
        let further = contexts.lendForContent()
        #expect(!further.isForContent)
        contexts.takeBack(further)
        #expect(!contexts.lendForContent().isForContent)
        contexts.takeBack(lent.removeLast())
        #expect(contexts.lendForContent().isForContent)
        #expect(!contexts.lendForContent().isForContent)
    }

    @Test func `buffers that are returned after the limits changed do not count`() {
        let contexts = ReadContexts(limits: .response)
        let lent = (0..<ReadContexts.mostForContent).map { _ in contexts.lendForContent() }
        contexts.change(.trailers)
        for context in lent { contexts.takeBack(context) }
        #expect(contexts.lendForContent().isForContent)
    }
}
