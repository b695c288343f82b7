import Glibc
import Testing

@testable import Coalescing

/// The memory of one operation, which a daemon pays for each request in flight.
struct OperationSizeTests {
    /// The bytes that `malloc` has given an object.
    private func bytes(of object: AnyObject) throws -> Int {
        typealias Size = @convention(c) (UnsafeRawPointer) -> Int
        let size = try unsafe #require(dlsym(nil, "malloc_usable_size"))
        return unsafe unsafeBitCast(size, to: Size.self)(Unmanaged.passUnretained(object).toOpaque())
    }

    @Test func `an operation takes at most so many bytes`() throws {
        #expect(try bytes(of: PlainOperation()) <= 120)
        #expect(try bytes(of: CoalescibleOperation<Int>()) <= 200)
        #expect(try bytes(of: CoalescibleOperation<String>()) <= 200)
        let manager = OperationQueueManager<Int>()
        let work = try #require(manager.enqueue(1, waiter: nil, make: { Idle() }).operation)
        #expect(try bytes(of: work) <= 264)
    }
}

private struct Idle: Work {
    func begin(_ completion: Completion<Int>) { completion.finish(.success(1)) }
}
