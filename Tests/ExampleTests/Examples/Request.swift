import Coalescing
import Foundation
import Synchronization

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

enum ForecastError: Error, Equatable {
    case unreachable
    case status(Int)
    case malformed
}

/// One request. Any number of callers wait for it; when the last of them is cancelled, so is the request.
final class ForecastRequest: Work {
    let url: URL
    let session: URLSession
    let task = Mutex<URLSessionDataTask?>(nil)

    init(_ url: URL, session: URLSession) {
        self.url = url
        self.session = session
    }

    func begin(_ completion: Completion<Forecast>) {
        let task = session.dataTask(with: url) { data, response, _ in
            completion.finish(Result { try Self.forecast(in: data, of: response) })
        }
        self.task.withLock { $0 = task }
        task.resume()
    }

    func stop() { task.withLock { $0?.cancel() } }

    static func forecast(in data: Data?, of response: URLResponse?) throws(ForecastError) -> Forecast {
        guard let data, let status = (response as? HTTPURLResponse)?.statusCode else { throw .unreachable }
        guard status == 200 else { throw .status(status) }
        do { return try JSONDecoder().decode(Forecast.self, from: data) } catch { throw .malformed }
    }
}

extension OperationQueueManager<URL> {
    func forecast(at url: URL, session: URLSession) async throws -> Forecast {
        try await value(for: url) { ForecastRequest(url, session: session) }
    }
}
