import Bytes
import HTTPSemantics
import Logging
import RouteTesting
import Storage
import Testing
import Upstream

@testable import Proxy

/// The body that a fetch fills: memory, the wait for it, and the window.
@Suite struct ArrivingBodyTests {
    private static let memory = 1 << 20
    private let shared: SharedState
    private let response: StoredResponse
    private let body: GrowingBody

    init() throws {
        var settings = StorageSettings()
        settings.memory = Self.memory
        shared = SharedState(settings, log: Logger(label: "tests") { _ in SwiftLogNoOpLogHandler() })
        body = GrowingBody(budget: shared.budget, window: GrowingBody.smallestWindow)
        let head = block("Cache-Control: no-store")
        let facts = ResponseFacts(
            status: .ok, fields: head.view, requestTime: arrival, responseTime: arrival, policy: CachingPolicy())
        response = StoredResponse(head: head, facts: facts, body: body)
    }

    private func take(
        _ count: Int, _ arriving: inout ArrivingBody, into other: GrowingBody? = nil, at now: Int64 = 0
    ) -> ArrivingBody.Intake {
        let bytes = [UInt8](repeating: 0x78, count: count)
        return arriving.take(bytes.span, into: other ?? body, of: response, memory: shared, at: now)
    }

    private func wait(_ arriving: inout ArrivingBody, since now: Int64) {
        arriving = arriving.waitingForMemory(MemoryWait(for: .body, since: now, in: shared.memoryLine) {})
    }

    /// Reserves all memory but `left` bytes.
    private func reserveAll(but left: Int = 0) { #expect(shared.budget.reserve(Self.memory - left)) }

    @Test func `bytes that find no memory wait in line, and leave it once they find some`() {
        reserveAll()
        var arriving = ArrivingBody()
        guard case .noMemory(after: 0) = take(1000, &arriving) else { return #expect(Bool(false)) }
        wait(&arriving, since: 10)
        #expect(arriving.isPaused && arriving.memoryWait?.since == 10 && !shared.memoryLine.isEmpty)
        shared.budget.release(Self.memory)
        guard case .done(.taken) = take(1000, &arriving) else { return #expect(Bool(false)) }
        #expect(!arriving.isPaused && arriving.memoryWait == nil && arriving.received == 1000)
        #expect(shared.memoryLine.isEmpty)
    }

    @Test func `a body that looks for memory in vain keeps its place in line`() {
        reserveAll()
        var (first, second) = (ArrivingBody(), ArrivingBody())
        wait(&first, since: 10)
        let others = (1..<MemoryLine.front).map { _ in MemoryWait(for: .body, since: 20, in: shared.memoryLine) {} }
        wait(&second, since: 30)
        first = first.resumed()
        guard case .noMemory = take(1000, &first, at: 40) else { return #expect(Bool(false)) }
        #expect(first.mayTakeMemory(for: .body, of: shared, at: 40))
        #expect(!second.mayTakeMemory(for: .body, of: shared, at: 40))
        #expect(first.memoryWait?.since == 10)
        withExtendedLifetime(others) {}
    }

    @Test func `the time of the wait begins anew once there was memory for some of the bytes`() {
        let first = GrowingBody.firstPieceSize
        reserveAll(but: first)
        var arriving = ArrivingBody()
        guard case .done(.taken) = take(first - 500, &arriving) else { return #expect(Bool(false)) }
        wait(&arriving, since: 10)
        guard case .noMemory(after: 500) = take(1000, &arriving, at: 50) else { return #expect(Bool(false)) }
        #expect(arriving.memoryWait?.since == 50 && arriving.received == first)
        guard case .noMemory(after: 0) = take(500, &arriving, at: 70) else { return #expect(Bool(false)) }
        #expect(arriving.memoryWait?.since == 50)
    }

    @Test func `a full window waits for its readers, not for memory`() {
        var arriving = ArrivingBody()
        let reader = body.attach()
        guard case .done(.takenAndFull) = take(GrowingBody.smallestWindow, &arriving) else {
            return #expect(Bool(false))
        }
        #expect(arriving.isPaused && arriving.memoryWait == nil)
        arriving = arriving.resumed()
        #expect(!arriving.isPaused)
        withExtendedLifetime(reader) {}
    }

    @Test func `a head that finds no memory waits behind others, and wakes the next when it finds some`() {
        reserveAll()
        var arriving = ArrivingBody(length: 1000)
        let inVain = arriving.begin(body, memory: shared, at: 10)
        arriving = arriving.waitingForMemory(MemoryWait(for: .head, since: 10, in: shared.memoryLine) {})
        let woken = GrowingBody(budget: shared.budget)
        let next = MemoryWait(for: .head, since: 20, in: shared.memoryLine) { woken.complete() }
        shared.budget.release(Self.memory)
        let found = arriving.begin(body, memory: shared, at: 30)
        #expect(!inVain && found && arriving.memoryWait == nil && woken.phase == .complete)
        withExtendedLifetime(next) {}
    }

    @Test func `a body longer than announced is refused, and the last bytes of one that is not are known`() {
        var arriving = ArrivingBody(length: 1000)
        #expect(!arriving.isCompleted(by: 999) && arriving.isCompleted(by: 1000))
        guard case .tooLong = take(1001, &arriving) else { return #expect(Bool(false)) }
        #expect(arriving.received == 0)
    }

    @Test func `a body kept whole that finds no memory is to go on in a window`() {
        let whole = GrowingBody(budget: shared.budget)
        var arriving = ArrivingBody(.stored)
        let piece = GrowingBody.laterPieceSize
        reserveAll(but: 3 * piece)
        for _ in 0..<2 {
            guard case .done(.taken) = take(piece, &arriving, into: whole) else { return #expect(Bool(false)) }
        }
        guard case .noRoom = take(piece, &arriving, into: whole) else { return #expect(Bool(false)) }
        #expect(arriving.willBeStored && arriving.received == 2 * piece)
        arriving = arriving.keepingWindow(whole, of: GrowingBody.smallestWindow)
        guard case .done = take(piece, &arriving, into: whole) else { return #expect(Bool(false)) }
        #expect(!arriving.willBeStored && arriving.received == 3 * piece)
    }
}
