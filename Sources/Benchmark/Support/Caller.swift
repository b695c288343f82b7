/// One connection that sends a request, waits for the response, and sends the next request.
final class Caller {
    private let descriptor: Int32
    private let port: Int
    private let host: String?
    private var reader = AnswerReader()
    private var parser = AnswerHeadParser()
    private var buffer = [UInt8](repeating: 0, count: 1 << 16)

    /// - Parameter host: what the requests name; `nil`: that of the port.
    init?(port: Int, host: String? = nil) {
        guard let descriptor = System.connect(port: port) else { return nil }
        System.setReceiveTimeout(descriptor, seconds: 10)
        self.descriptor = descriptor
        self.port = port
        self.host = host
    }

    deinit { System.close(descriptor) }

    func ask(_ path: String) { send(RequestText(path: path, port: port, host: host).bytes) }

    /// Sends a request of any kind.
    func send(_ request: [UInt8]) { _ = System.write(descriptor, request) }

    /// The next response, which is read whole; nil if there is none.
    func answer() -> AnswerReader.Answer? {
        var kept = 0
        while kept < buffer.count, let count = System.read(descriptor, into: &buffer, from: kept), count > 0 {
            var position = 0
            switch reader.read(buffer, count: kept + count, &position, &parser) {
            case .answer(let answer): return answer
            case .malformed: return nil
            case .more:
                let rest = Array(buffer[position..<(kept + count)])
                buffer.replaceSubrange(..<rest.count, with: rest)
                kept = rest.count
            }
        }
        return nil
    }

    /// Requests all of `paths` over several connections, so that they are stored. False if a response was not 200 with
    /// `size` bytes.
    @discardableResult
    static func fetch(_ paths: [String], size: Int, port: Int, host: String? = nil) -> Bool {
        let callers = (0..<min(16, paths.count)).compactMap { _ in Caller(port: port, host: host) }
        guard !callers.isEmpty else { return false }
        var next = 0
        while next < paths.count {
            let batch = paths[next..<min(next + callers.count, paths.count)]
            for (caller, path) in zip(callers, batch) { caller.ask(path) }
            for (caller, _) in zip(callers, batch) {
                guard let answer = caller.answer(), answer.status == 200, answer.length == size else { return false }
            }
            next += batch.count
        }
        return true
    }
}
