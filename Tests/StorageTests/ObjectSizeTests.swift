import Bytes
import HTTPSemantics
import Testing

@testable import Storage

/// What of a response counts against the largest object.
@Suite struct ObjectSizeTests {
    private let cache = Cache()

    @Test(arguments: [0, 100, 2_000, 3_000, 9_000])
    func `the size estimated from the head is never below the stored size, packed or not`(_ size: Int) throws {
        let response = try #require(cache.response(size, vary: "Accept, Origin"))
        let packed = response.packed(under: cache.key("k"))
        let head = response.head
        let most = StoredResponse.mostObjectSize(head.view, content: size, partOf: nil)
        #expect(packed.isPacked == (size <= StoredResponse.packedBody))
        #expect(most >= response.objectSize && response.objectSize == packed.objectSize)
        #expect(response.objectSize == response.objectSize(content: size) && response.objectSize > size)
    }

    @Test func `an announced length beyond the largest number is too large`() {
        let head = Sample.head([("A", "b")])
        #expect(StoredResponse.mostObjectSize(head.view, content: .max, partOf: nil) == .max)
    }
}
