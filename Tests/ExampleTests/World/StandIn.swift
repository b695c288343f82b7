import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The server of a `URLSession`, without a network. It answers by the path.
final class StandIn: URLProtocol {
    static let asked = Log<URL?>()
    static let stopped = Log<URL?>()

    static func session() -> URLSession {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.protocolClasses = [StandIn.self]
        return URLSession(configuration: configuration)
    }

    override class func canInit(with request: URLRequest) -> Bool { true }
    override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }

    override func startLoading() {
        Self.asked.append(request.url)
        switch request.url?.lastPathComponent {
        case "Rome": answer(200, #"{"city": "Rome", "degrees": 21}"#)
        case "Babel": answer(200, "<html>")
        case "Atlantis": answer(404, "")
        case "Moon": client?.urlProtocol(self, didFailWithError: URLError(.cannotConnectToHost))
        default: break
        }
    }

    override func stopLoading() { Self.stopped.append(request.url) }

    private func answer(_ status: Int, _ body: String) {
        guard let url = request.url,
            let response = HTTPURLResponse(url: url, statusCode: status, httpVersion: nil, headerFields: nil)
        else { return }
        client?.urlProtocol(self, didReceive: response, cacheStoragePolicy: .notAllowed)
        client?.urlProtocol(self, didLoad: Data(body.utf8))
        client?.urlProtocolDidFinishLoading(self)
    }
}
