/// The rows that wrk drives.
extension Comparison {
    private static let sizes = [(0, "0"), (1024, "1 KiB"), (10_240, "10 KiB"), (102_400, "100 KiB"), (1 << 20, "1 MiB")]

    func hits() throws {
        for (size, name) in Self.sizes where !plan.isQuick || size == 1024 || size == 102_400 {
            fetch("/c/\(size)/hit", size: size)
            try withBare(size) { measure("hit, \(name)", Load(path: "/c/\(size)/hit"), $0) }
        }
    }

    /// Objects drawn by Zipf's law with exponent 0.9, as web traffic has it (Breslau et al., INFOCOM 1999).
    func zipfHits() throws {
        let count = 100_000
        for program in programs.values {
            Caller.fetch((0..<count).map { "/c/1024/z\($0)" }, size: 1024, port: program.port)
        }
        let script = """
            local ready, at = {}, 0
            function init(args)
              math.randomseed(4)
              local cumulative, sum = {}, 0
              for rank = 1, \(count) do sum = sum + rank ^ -0.9; cumulative[rank] = sum end
              for number = 1, 200000 do
                local u, low, high = math.random() * sum, 1, \(count)
                while low < high do
                  local middle = math.floor((low + high) / 2)
                  if cumulative[middle] < u then low = middle + 1 else high = middle end
                end
                -- Neighbours in rank are not neighbours in name.
                ready[number] = wrk.format("GET", "/c/1024/z" .. (low * 7919) % \(count))
              end
            end
            function request() at = at % 200000 + 1; return ready[at] end

            """
        try withBare(1024) { measure("hit, zipf over 100,000", Load(path: "/", script: script), $0) }
    }

    func pipelinedHits() throws {
        fetch("/c/1024/hit", size: 1024)
        let script = """
            function init(args)
              local all = {}
              for number = 1, 16 do all[number] = wrk.format("GET", "/c/1024/hit") end
              ready = table.concat(all)
            end
            function request() return ready end

            """
        try withBare(1024, ["counting"]) { measure("hit, 16 pipelined", Load(path: "/", script: script), $0, latencies: false) }
    }

    func newConnections() throws {
        fetch("/c/1024/hit", size: 1024)
        let load = Load(path: "/c/1024/hit", script: "wrk.headers[\"Connection\"] = \"close\"\n")
        try withBare(1024, ["closing"]) { measure("hit, new connection each", load, $0) }
    }

    func notModified() throws {
        fetch("/c/1024/hit", size: 1024)
        let load = Load(path: "/c/1024/hit", script: "wrk.headers[\"If-None-Match\"] = '\"v1\"'\n")
        // Allowed (RFC 9110 §8.6), and yet wrk waits for the body.
        let unable: [Kind: String] = [.haproxy: "wrk cannot: its 304 names a length"]
        try withBare(0) { measure("304", load, $0, unable: unable, latencies: false) }
    }

    func ranges() throws {
        fetch("/c/102400/hit", size: 102_400)
        let load = Load(path: "/c/102400/hit", script: "wrk.headers[\"Range\"] = \"bytes=5000-6023\"\n")
        try withBare(1024) {
            measure("range, 1 KiB of 100 KiB", load, $0, unable: [.haproxy: "cannot: sends it whole"], latencies: false)
        }
    }

    private func missScript(_ size: Int) -> String {
        """
        local at = 0
        function request()
          at = at + 1
          return wrk.format("GET", "/c/\(size)/mNUMBER-" .. at)
        end

        """
    }

    func misses() throws {
        measure("stored miss, 1 KiB", Load(path: "/", script: missScript(1024)), programs)
    }

    func passes() throws {
        fetch("/p/1024/pass", size: 1024)
        measure("pass, 1 KiB", Load(path: "/p/1024/pass"), programs)
    }

    func posts() throws {
        let script = "wrk.method = \"POST\"\nwrk.body = string.rep(\"x\", 1048576)\n"
        measure("POST of 1 MiB", Load(path: "/post", connections: 8, script: script), programs, latencies: false)
    }

    /// Misses with the memory full, so that each stored response evicts another.
    func churn() throws {
        var small: [Kind: Program] = [:]
        for kind in kinds where kind != .bare {
            let program = try start(kind, Program.Options(memoryMiB: 32))
            Caller.fetch((0..<6000).map { "/c/10240/fill\($0)" }, size: 10_240, port: program.port)
            small[kind] = program
        }
        measure("eviction churn, 10 KiB in 32 MiB", Load(path: "/", script: missScript(10_240)), small, latencies: false)
        for program in small.values { program.stop() }
    }
}
