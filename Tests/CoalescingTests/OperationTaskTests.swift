import Testing

@testable import Coalescing
@testable import CoalescingPlaces

/// Work that is made of what other work has brought.
struct OperationTaskTests {
    let hosts = OperationQueueManager<String>()
    let pages = OperationQueueManager<String>()
    let desk = Desk()
    let got = Log<String>()

    private func asks(_ host: String) -> Enqueued<WorkOperation<Errand>, Never> {
        hosts.enqueue(host, waiter: nil) { Errand(desk: desk) }
    }

    private var waiter: Waiter<String> {
        Waiter(on: InlineQueue.shared) { [got] result in
            switch result {
            case .success(let value): got.append(value)
            case .failure(.dependency(let cause)): got.append("dependency \(cause.name)")
            case .failure(let error): got.append("\(error.name)")
            }
        }
    }

    private func results(_ count: Int) async {
        while got.entries.count < count { await Task.yield() }
    }

    @Test func `the work gets the values of its dependencies, which are asked for only if it is needed`() async {
        let asked = Log<Int>()
        let task = OperationTask {
            asked.append(1)
            return (asks("a"), hosts.enqueue("b", waiter: nil) { Telling(text: "b") })
        } make: { number, text in
            Telling(text: "\(number) \(text)")
        }
        #expect(pages.enqueue("x", waiter: waiter, task: task).operation?.phase == .pending)
        #expect(pages.enqueue("x", waiter: waiter, task: task).isJoined)
        desk.take()?.finish(.success(7))
        await results(2)
        #expect(got.entries == ["7 b", "7 b"] && asked.entries == [1])
        #expect(pages.snapshot.inFlight == 0 && hosts.snapshot.inFlight == 0)
    }

    @Test func `a dependency that fails is passed on, and the work is never made`() async {
        let made = Log<Int>()
        let task = OperationTask(after: { asks("a") }) { _ in
            made.append(1)
            return Telling(text: "")
        }
        _ = pages.enqueue("x", waiter: waiter, task: task)
        desk.take()?.finish(.failure(Broken()))
        _ = pages.enqueue("x", waiter: waiter, task: task)
        hosts.cancelAll()
        hosts.maxConcurrent = 0
        hosts.maxQueued = 0
        _ = pages.enqueue("x", waiter: waiter, task: task)
        #expect(got.entries == ["dependency failed", "dependency cancelled", "dependency failed"])
        #expect(made.entries == [] && pages.snapshot.inFlight == 0)
    }

    @Test func `a task after the end of others gets their results`() async {
        let task = OperationTask(afterEnd: { asks("a") }) { result in
            Telling(text: (try? result.get()) == nil ? "without" : "with")
        }
        _ = pages.enqueue("x", waiter: waiter, task: task)
        desk.take()?.finish(.failure(Broken()))
        await results(1)
        hosts.maxConcurrent = 0
        hosts.maxQueued = 0
        _ = pages.enqueue("x", waiter: waiter, task: task)
        await results(2)
        #expect(got.entries == ["without", "without"])
    }

    @Test func `two tasks that wait for each other end`() {
        let pages = pages
        @Sendable func ask(_ name: String, for other: String, _ waiter: Waiter<String>?) -> Enqueued<
            WorkOperation<Telling>, Never
        > {
            pages.enqueue(
                name, waiter: waiter, task: OperationTask(after: { ask(other, for: name, nil) }) { Telling(text: $0) })
        }
        _ = ask("a", for: "b", waiter)
        #expect(got.entries == ["dependency abandoned"])
        #expect(pages.snapshot.inFlight == 0)
    }

    @Test func `async callers share a task, get its value, and leave it without harm`() async throws {
        let (hosts, pages, desk) = (hosts, pages, desk)
        let callers = (0..<3).map { _ in
            Task {
                try await pages.value(
                    for: "x",
                    task: OperationTask(after: { hosts.enqueue("a", waiter: nil) { Errand(desk: desk) } }) {
                        Telling(text: "\($0)")
                    })
            }
        }
        while pages.operation(for: "x", as: WorkOperation<Telling>.self)?.waiterCount != 3 { await Task.yield() }
        callers[0].cancel()
        await #expect(throws: CancellationError.self) { try await callers[0].value }
        #expect(desk.calls.entries == ["begin"])
        desk.take()?.finish(.success(7))
        for caller in callers.dropFirst() { #expect(try await caller.value == "7") }
        #expect(hosts.snapshot.started == 1 && pages.snapshot.started == 1)
    }

    @Test func `a task's error reaches async callers, and a kept result is found`() async throws {
        let task = OperationTask(after: { asks("a") }) { Telling(text: "\($0)") }
        #expect(try await pages.value(for: "x", unless: { "kept" }, task: task) == "kept")
        #expect(desk.calls.entries == [] && pages.snapshot.found == 1)
        hosts.maxConcurrent = 0
        hosts.maxQueued = 0
        let error = await #expect(throws: OperationError.self) { try await pages.value(for: "x", task: task) }
        #expect(error?.name.description == "dependency")
    }

    @Test func `work that is cancelled while it waits leaves its dependency alone`() async {
        _ = pages.enqueue("x", waiter: waiter, task: OperationTask(after: { asks("a") }) { Telling(text: "\($0)") })
        pages.cancelAll()
        desk.take()?.finish(.success(1))
        #expect(got.entries == ["cancelled"] && pages.snapshot.inFlight == 0 && hosts.snapshot.finished == 1)
    }
}

/// Work that is over at once.
private struct Telling: Work {
    let text: String
    func begin(_ completion: Completion<String>) { completion.finish(.success(text)) }
}
