import Bytes
import HTTPSemantics
import RouteTesting
import Testing
import Upstream

@testable import Routing

/// Which references count as naming the origin, and what they become.
@Suite struct OriginNamesTests {
    struct Row: Sendable, CustomTestStringConvertible {
        let reference: String
        /// `nil`: unchanged.
        let becomes: String?
        var asked = "www.example.com:8080"
        var scheme = ClientScheme.http
        /// The `Host` sent to the origin, as the upstream has it.
        var host: String?

        var testDescription: String { "\(reference), asked \(scheme) \(asked), host \(host ?? "none")" }
    }

    struct Unchanged: Error {}

    private static func renamed(_ row: Row) throws -> String? {
        var upstream = UpstreamSettings(
            name: "one",
            servers: [
                UpstreamServer(host: "10.0.0.1", port: 8000), UpstreamServer(host: "app.internal"),
                UpstreamServer(host: "::1", port: 9000), .unix(path: "/run/a.sock"),
            ])
        upstream.host = row.host
        let request = try ParsedHead("GET /x\nHost: \(row.asked)")
        let (fields, asked) = (block("X-A: b\nLocation: \(row.reference)\nX-C: d"), request.fields)
        guard
            let renamed = OriginNames(upstream).renamed(fields.view, for: request.head, asked.view, row.scheme)
        else { return nil }
        let view = renamed.view
        let (count, hasLocation) = (view.lines.count, view.contains(.location))
        #expect(count == 3 && hasLocation)
        let others = [String(view.value(at: 0)), String(view.value(at: 2))]
        #expect(others == ["b", "d"])
        guard let location = view.firstValue(of: .location) else { return nil }
        return String(location)
    }

    @Test(arguments: [
        Row(reference: "http://10.0.0.1:8000/y?a#b", becomes: "http://www.example.com:8080/y?a#b"),
        Row(reference: "HTTP://10.0.0.1:8000", becomes: "http://www.example.com:8080"),
        Row(reference: "//10.0.0.1:8000/y", becomes: "http://www.example.com:8080/y"),
        Row(reference: "http://APP.internal/y", becomes: "http://www.example.com:8080/y"),
        Row(reference: "http://app.internal:80?a", becomes: "http://www.example.com:8080?a"),
        Row(reference: "http://app.internal:/y", becomes: "http://www.example.com:8080/y"),
        Row(reference: "http://[::1]:9000/y", becomes: "http://www.example.com:8080/y"),
        Row(
            reference: "http://10.0.0.1:8000/y", becomes: "https://a.example/y", asked: "A.example:443", scheme: .https),
        Row(reference: "https://app.internal/y", becomes: "https://a.example/y", asked: "a.example", scheme: .https),
        // A redirect from http to https stays one.
        Row(reference: "https://app.internal/y", becomes: "https://www.example.com/y"),
        // The server's port, behind the host that it was sent.
        Row(reference: "http://www.example.com:8000/y/", becomes: "http://www.example.com:8080/y/"),
        Row(
            reference: "http://www.example.com:9000/y/", becomes: "http://www.example.com/y/", asked: "www.example.com"),
        Row(reference: "http://www.example.com:8000/", becomes: nil, asked: "www.example.com:8000"),
        Row(reference: "http://www.example.com:8000/", becomes: nil, host: "back.example"),
        Row(reference: "http://back.example/y", becomes: "http://www.example.com:8080/y", host: "back.example"),
        Row(reference: "http://back.example:81/y", becomes: "http://www.example.com:8080/y", host: "back.example:81"),
        Row(reference: "http://back.example/y", becomes: nil, host: "back.example:81"),
        Row(reference: "http://10.0.0.1/y", becomes: nil), Row(reference: "http://10.0.0.1:8001/y", becomes: nil),
        Row(reference: "http://10.0.0.10:8000/y", becomes: nil), Row(reference: "ftp://10.0.0.1:8000/y", becomes: nil),
        Row(reference: "http://www.example.com:8080/y", becomes: nil),
        Row(reference: "http://me@app.internal/y", becomes: nil), Row(reference: "http:/app.internal/y", becomes: nil),
        Row(reference: "/app.internal/y", becomes: nil), Row(reference: "app.internal/y", becomes: nil),
        Row(reference: "http://app.internal.evil.example/", becomes: nil), Row(reference: "http://", becomes: nil),
        Row(reference: "http", becomes: nil), Row(reference: "?http://app.internal/", becomes: nil),
    ])
    func `a reference that names the origin becomes one to the host that was asked`(_ row: Row) throws {
        #expect(try Self.renamed(row) == row.becomes)
    }

    @Test func `every line of both fields is renamed, and other fields stay`() throws {
        let request = try ParsedHead("GET /x\nHost: a.example")
        let fields = block(
            "Content-Location: http://app.internal/1\nLink: http://app.internal/2\nLocation: http://app.internal/3")
        let upstream = UpstreamSettings(name: "one", servers: [UpstreamServer(host: "app.internal")])
        let asked = request.fields
        let renamed = OriginNames(upstream).renamed(fields.view, for: request.head, asked.view, .http)
        guard let renamed else { throw Unchanged() }
        let view = renamed.view
        let values = (0..<3).map { String(view.value(at: $0)) }
        #expect(values == ["http://a.example/1", "http://app.internal/2", "http://a.example/3"])
    }

    /// What a reference of a server with TLS becomes; `upstream` has a second server at port 8443.
    private static func renamedByTLS(
        _ reference: String, asked: String, _ scheme: ClientScheme, host: String? = nil
    ) throws -> String {
        let request = try ParsedHead("GET /x\nHost: \(asked)")
        let (fields, asked) = (block("Location: \(reference)"), request.fields)
        var upstream = UpstreamSettings(
            name: "one",
            servers: [
                UpstreamServer(host: "app.internal", isSecure: true),
                UpstreamServer(host: "10.0.0.1", port: 8443, isSecure: true),
            ])
        upstream.host = host
        let renamed = OriginNames(upstream).renamed(fields.view, for: request.head, asked.view, scheme)
        guard let renamed else { throw Unchanged() }
        let view = renamed.view
        guard let location = view.firstValue(of: .location) else { throw Unchanged() }
        return String(location)
    }

    @Test(arguments: ["https://app.internal/1", "https://app.internal:443/1", "https://www.internal/1"])
    func `the port of a server with TLS is that of https`(reference: String) throws {
        let renamed = try Self.renamedByTLS(reference, asked: "a.example", .https, host: "www.internal:443")
        #expect(renamed == "https://a.example/1")
    }

    @Test(arguments: [
        // The server's own address, and its port behind the host that it was sent.
        ("https://app.internal/1", "a.example:8080", "http://a.example:8080/1"),
        ("https://app.internal:443/1", "a.example:8080", "http://a.example:8080/1"),
        ("https://10.0.0.1:8443/1", "a.example", "http://a.example/1"),
        ("https://a.example:8443/1", "a.example", "http://a.example/1"),
        ("http://app.internal/1", "a.example:8080", "http://a.example:8080/1"),
        // Clients ask for the server's own name: a redirect from http to https stays one.
        ("https://app.internal/1", "app.internal:8080", "https://app.internal/1"),
    ])
    func `a server with TLS that names its address does not lead clients from http to https`(
        reference: String, asked: String, becomes: String
    ) throws {
        #expect(try Self.renamedByTLS(reference, asked: asked, .http) == becomes)
    }

    @Test func `a server with TLS that names the host it is sent may lead clients from http to https`() throws {
        let renamed = try Self.renamedByTLS(
            "https://www.internal/1", asked: "a.example:8080", .http, host: "www.internal")
        #expect(renamed == "https://a.example/1")
    }
}
