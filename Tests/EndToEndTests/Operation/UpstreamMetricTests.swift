import Glibc
import Testing

/// Several sites behind one proxy, told apart.
@Suite(.scenario) struct UpstreamMetricTests {
    private func file(_ upstreams: [(name: String, url: String)]) -> String {
        (["hosts: [\(upstreams.map { "\($0.name).example" }.joined(separator: ", "))]", "upstreams:"]
            + upstreams.map { "  - {name: \($0.name), servers: [\"\($0.url)\"]}" }
            + ["routes:"] + upstreams.map { "  - {upstream: \($0.name), host: \($0.name).example}" } + [""])
            .joined(separator: "\n")
    }

    /// The samples of those counters that have counted something.
    private func counted(_ proxy: Program) throws -> Set<String> {
        let names = [
            "verdicts_total", "upstream_fetches_total", "upstream_failures_total", "upstream_retries_total",
            "upstream_responses_total", "upstream_first_byte_seconds_count", "upstream_connect_seconds_count",
        ]
        let lines = try proxy.admin.get("/metrics").wholeText.split(separator: "\n").map(String.init)
        return Set(
            lines.filter { line in !line.hasSuffix(" 0") && names.contains { line.hasPrefix("coalesced_\($0){") } }
                .map { $0.replacing("coalesced_", with: "").replacing("_total", with: "").replacing("\"", with: "") })
    }

    @Test func `verdicts, fetches and failures are counted for each upstream, across reloads`() throws {
        let (shop, moved, images) = (try ScriptedOrigin(), try ScriptedOrigin(), try ScriptedOrigin())
        defer { for origin in [shop, moved, images] { origin.stop() } }
        for origin in [shop, moved, images] {
            origin.on("/a") { _ in [.answer(200, "Cache-Control: max-age=600", body: "a")] }
            origin.on("/cut") { _ in [.close] }
        }
        // Longer than what a socket takes at once: the client takes it bit by bit.
        images.on("/large") { _ in
            [.head(200, "Cache-Control: max-age=600", "Content-Length: 4000000"), .pattern(0..<4_000_000)]
        }
        let proxy = try Program.serve(
            file: file([("shop", shop.url), ("images", images.url)]), arguments: ["--workers", "1"])
        defer { proxy.stop() }
        for _ in 1...3 { try proxy.get("/a", "Host: shop.example") }
        try proxy.get("/a", "Host: images.example")
        for _ in 1...2 {
            let answer = try proxy.get("/large", "Host: images.example")
            #expect(answer.isWhole(4_000_000))
        }
        try proxy.get("/cut", "Host: shop.example")
        try proxy.get("/a", "Host: nobody.example")
        let ended = try proxy.send("OPTIONS", "/a", "Host: images.example", "Max-Forwards: 0")
        #expect(ended.status == 200)
        let before: Set = [
            "verdicts{upstream=shop,verdict=hit} 2", "verdicts{upstream=shop,verdict=miss} 1",
            "verdicts{upstream=shop,verdict=synthetic} 1", "verdicts{upstream=images,verdict=hit} 1",
            "verdicts{upstream=images,verdict=miss} 2", "verdicts{upstream=images,verdict=synthetic} 1",
            "verdicts{upstream=,verdict=refused} 1",
            "upstream_fetches{upstream=shop} 3", "upstream_fetches{upstream=images} 2",
            // On the connection that was kept, and again on a new one.
            "upstream_failures{upstream=shop,kind=closed} 2", "upstream_retries{upstream=shop} 1",
            "upstream_responses{upstream=shop,class=2xx} 1", "upstream_responses{upstream=images,class=2xx} 2",
            "upstream_first_byte_seconds_count{upstream=shop} 1",
            "upstream_first_byte_seconds_count{upstream=images} 2",
            "upstream_connect_seconds_count{upstream=shop} 2", "upstream_connect_seconds_count{upstream=images} 1",
        ]
        try eventually("each is counted where it belongs") { try counted(proxy) == before }

        try System.write(file([("blog", images.url), ("shop", moved.url)]), to: proxy.configurationPath)
        proxy.signal(SIGHUP)
        try eventually("it is reloaded") { try proxy.get("/a", "Host: blog.example").status == 200 }
        try proxy.get("/b", "Host: shop.example")
        let after = try counted(proxy)
        #expect(after.contains("verdicts{upstream=shop,verdict=hit} 2"), "it stays, with another server")
        #expect(after.contains("upstream_fetches{upstream=shop} 4") && moved.total == 1)
        #expect(!after.contains { $0.contains("images") }, "it has gone")
        #expect(after.contains("upstream_fetches{upstream=blog} 1"))
        #expect(after.contains("upstream_responses{upstream=shop,class=4xx} 1"), "its own 404")
    }
}
