import Testing

@Suite(.scenario) struct LatencyMetricTests {
    @Test(.overHTTP1("the refused request is malformed"))
    func `an error page for a slow origin is timed in the histograms, a refusal is not`()
        throws
    {
        try scenario(.firstByteTimeout(.milliseconds(300))) { origin, proxy in
            let gate = Gate()
            defer { gate.open() }
            origin.on("/slow") { _ in [.gate(gate), .answer(200, body: "late")] }
            #expect(try proxy.get("/slow").status == 504)
            let client = try proxy.connect()
            try client.send("GET / HTTP/1.1\r\n\r\n")
            #expect(try client.answer().status == 400)
            let name = "coalesced_request_duration_seconds_"
            try eventually("both are counted") {
                let page = try proxy.admin.get("/metrics").wholeText
                return Program.sum("coalesced_verdicts_total", in: page) == 2
            }
            let page = try proxy.admin.get("/metrics").wholeText
            #expect(Program.sum("\(name)count", in: page) == 1)
            #expect(Program.sum(#"\#(name)count{class="synthetic"}"#, in: page) == 1)
            #expect(Program.sum(#"\#(name)sum{class="synthetic"}"#, in: page) > 0.25)
        }
    }
}
