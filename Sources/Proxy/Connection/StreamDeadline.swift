import Libevent

/// The deadline of one stream, for the streams that need one: a hit that its client's windows let pass has none.
final class StreamDeadline: DeadlineTarget {
    enum Waiting {
        /// More of the request's content.
        case content
        /// A window that lets bytes of the response pass.
        case taking
    }

    private weak var response: HTTP2Response?
    private let wheel: DeadlineWheel
    private let loop: EventLoop
    private var deadline = LazyDeadline<Waiting>()

    init(of response: HTTP2Response) {
        self.response = response
        wheel = response.context.deadlines
        loop = response.context.loop
        super.init()
    }

    var waitsFor: Waiting? { deadline.waitsFor }

    /// Nanoseconds of the loop's clock.
    var time: Int64 { deadline.time }

    func due(_ waiting: Waiting, _ time: Int64) {
        deadline = deadline.awaiting(waiting, until: time, for: self, on: wheel)
    }

    func clear() { deadline.clear() }

    /// The stream is closed.
    func end() {
        response = nil
        deadline = deadline.cancelled(on: wheel)
    }

    override func deadlineReached() -> Int64? {
        let (reached, left) = deadline.reached(at: loop.now)
        deadline = left
        switch reached {
        case .nothing: return nil
        case .later(let time): return time
        case .due(.content): response?.contentIsLate()
        case .due(.taking): response?.takingIsDue()
        }
        return nil
    }
}
