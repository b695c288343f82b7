import Bytes
import Testing

@testable import Upstream

@Suite struct OutgoingContentTests {
    @Test(arguments: [UpstreamRequest.Content.length, .chunked])
    func `a reservation for content covers its memory, and is returned with the content`(
        _ framing: UpstreamRequest.Content
    ) {
        let budget = MemoryBudget(limit: 1 << 20)
        var content: OutgoingContent? = OutgoingContent(framing)
        let atFirst = content?.pieces.capacity ?? 0
        let bytes = [UInt8](repeating: 0x78, count: 3000)
        for count in [1, 1, 3000, 17, 3000, 230, 1, 2999] {
            guard let content else { return }
            let lack = content.lack(for: count)
            if lack > 0 {
                _ = budget.reserve(lack)
                content.grow(for: count, reservedOf: budget)
            }
            let piece = bytes[..<count]
            content.append(piece.span)
            let capacity = content.pieces.capacity
            #expect(capacity == atFirst + budget.used)
        }
        content?.end(trailers: nil)
        #expect(content?.pieces.capacity == atFirst + budget.used)
        content = nil
        #expect(budget.used == 0)
    }
}
