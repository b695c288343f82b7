import Testing

/// Which origin is asked, by host and path.
@Suite(.scenario) struct RoutingTests {
    @Test(.clientsInTheClear("the port is that of http"))
    func `each request goes to the upstream of its route, and upstreams share no stored responses`() throws {
        let origins = try ["shop", "images", "tenant"].map { name in
            let origin = try ScriptedOrigin()
            origin.on("*") { _ in [.answer(200, "Cache-Control: max-age=60", body: name)] }
            return origin
        }
        defer { for origin in origins { origin.stop() } }
        let proxy = try Program.serve(
            file: """
                upstreams:
                  - {name: shop, servers: ["\(origins[0].url)"]}
                  - {name: images, servers: ["\(origins[1].url)"]}
                  - {name: tenant, servers: ["\(origins[2].url)"]}
                routes:
                  - {upstream: images, host: tenant.example, path: /img/}
                  - {host: tenant.example, upstream: tenant}
                  - {path: /img, upstream: images}

                """)
        defer { proxy.stop() }
        let expected = [
            ("/", "a.example", "shop"), ("/img", "a.example", "images"), ("/img/a", "a.example", "images"),
            ("/images", "a.example", "shop"),
            ("/", "tenant.example", "tenant"), ("/", "TENANT.example:80", "tenant"),
            ("/img/a", "tenant.example", "images"), ("/img", "tenant.example", "tenant"),
        ]
        for isStored in [false, true] {
            for (path, host, upstream) in expected {
                let answer = try proxy.get(path, "Host: \(host)")
                #expect(answer.text == upstream, "\(host)\(path)")
                if isStored { #expect(answer.cacheStatus.contains("; hit"), "\(host)\(path)") }
            }
        }
        #expect(origins.map(\.total) == [2, 3, 2])
    }
}
