import Foundation

/// `Benchmark shared`: what the tier that machines share costs and brings.
struct SharedTier {
    /// One line of the table.
    private struct Row {
        let name: String
        let figure: String
    }

    private let plan: Plan
    private let origin: Origin
    /// For the responses of one measurement, in the machines and in the engine.
    private let spareMemory = System.SpareMemory(512 << 20)
    private var rows: [Row] = []
    /// Each measurement asks for pages that nobody has asked for.
    private var run = 0

    private var pages: Int { plan.isQuick ? 1000 : 4000 }
    private var turns: Int { plan.isQuick ? 2 : 5 }
    private static let sizes = [(1 << 10, "1 KiB"), (10 << 10, "10 KiB"), (100 << 10, "100 KiB")]

    init(_ plan: Plan) throws {
        self.plan = plan
        System.raiseDescriptorLimit()
        System.pin(toCore: 1)
        origin = try Origin(port: 19_000 + Int(getpid()) % 1000)
    }

    static func table(_ plan: Plan) throws -> String {
        guard Shell.has("redis-server") else {
            throw Problem("redis-server is not installed: apt install redis-server")
        }
        var bench = try SharedTier(plan)
        let before = Machine.Use()
        try bench.hits()
        try bench.times()
        try bench.following()
        try bench.crowd()
        var text =
            Machine.description(
                "medians of \(bench.turns) turns, with the least and the most", bench.versions,
                use: before.text(until: Machine.Use()))
            + "\n| row | figure |\n| --- | ---: |\n"
        for row in bench.rows { text += "| \(row.name) | \(row.figure) |\n" }
        return text
    }

    private var versions: [String] {
        let redis = Shell.output(["redis-server", "--version"])?.split(separator: " ").prefix(3).joined(separator: " ")
        return [
            "coalesced: \(Peer.version(.coalesced, plan))", "kernel: \(Peer.version(.bare, plan))",
            "nginx: \(Peer.version(.nginx, plan))", "Redis: \(redis ?? "not installed")",
        ]
    }

    private mutating func add(_ name: String, _ figure: String) {
        rows.append(Row(name: name, figure: figure))
        say("\(name): \(figure)")
    }

    private mutating func paths(_ count: Int, _ size: Int) -> [String] {
        run += 1
        return (0..<count).map { "/c/\(size)/shared\(run)-\($0)" }
    }

    // MARK: Rows

    /// The processor time of one response, in µs: of the machine that answers, and of what it asks.
    private struct Cost {
        var own = 0.0, other = 0.0
        var total: Double { own + other }
    }

    /// Asks for pages that another machine has, and measures what that takes beside what it takes to fetch them.
    private mutating func hits() throws {
        for (size, name) in Self.sizes {
            let shared = try Machines(.shared, count: 2, origin: origin.port, plan: plan)
            let nginx = Shell.has("nginx") ? try Machines(.nginx, count: 2, origin: origin.port, plan: plan) : nil
            let alone = try Machines(.alone, count: 1, origin: origin.port, plan: plan)
            var (ours, theirs, leads, misses, hits) = ([Cost](), [Cost](), [Cost](), [Cost](), [Cost]())
            var taken: [Double] = []
            let count = size > 50_000 ? pages / 4 : pages
            for turn in 0..<turns {
                let paths = paths(count, size)
                let before = shared.engineBytes
                let order = turn % 2 == 0 ? [shared, nginx, alone] : [alone, nginx, shared]
                for machines in order.compactMap(\.self) {
                    let first = try cost(machines, 0, paths, size, fetches: count)
                    switch machines.kind {
                    case .shared:
                        leads.append(first)
                        // What was fetched is in the engine a moment later.
                        System.nap(milliseconds: 300)
                        taken.append(Double(shared.engineBytes - before) / Double(count * size))
                        ours.append(try cost(machines, 1, paths, size, fetches: 0))
                        hits.append(try cost(machines, 1, paths, size, fetches: 0))
                    case .alone: misses.append(first)
                    case .nginx: theirs.append(try cost(machines, 1, paths, size, fetches: 0))
                    }
                }
            }
            func text(_ all: [Cost]) -> String {
                "\(all.map(\.total).median.short) (\(all.map(\.own).median.short) + \(all.map(\.other).median.short))"
            }
            add("\(name), CPU µs of a hit in memory", hits.map(\.own).median.short)
            add("\(name), CPU µs of a hit from the tier (proxy + Redis)", text(ours))
            if !theirs.isEmpty {
                add("\(name), CPU µs of nginx that stores it from a neighbour (nginx + neighbour)", text(theirs))
                let ratios = zip(ours, theirs).map { $0.total / $1.total }
                add("\(name), the one ÷ the other (goal: at most 0.60)", "\(ratios.median.short), \(ratios.spread)")
                let own = zip(ours, theirs).map { $0.own / $1.own }
                add("\(name), the same without Redis and without the neighbour", "\(own.median.short), \(own.spread)")
            }
            add("\(name), CPU µs of a miss that leads (proxy + Redis)", text(leads))
            add("\(name), CPU µs of the same miss without a tier", misses.map(\.own).median.short)
            add("\(name), bytes in the engine for a byte of body", "\(taken.median.short), \(taken.spread)")
            for machines in [shared, nginx, alone].compactMap(\.self) { machines.stop() }
        }
    }

    /// The cost of asking a machine for each of `paths` once.
    /// - Parameter fetches: how many of them should reach the origin.
    private func cost(_ machines: Machines, _ index: Int, _ paths: [String], _ size: Int, fetches: Int) throws -> Cost {
        spareMemory.lend()
        defer { spareMemory.takeBack() }
        let trees = machines.machines.map(\.tree)
        let (asked, before, engine) = (origin.asked, trees.map(\.cpu), machines.engine?.cpu)
        guard Caller.fetch(paths, size: size, port: machines.machines[index].port, host: Machines.host) else {
            throw Problem("\(machines.kind.rawValue) gave a wrong response")
        }
        let spent = zip(trees, before).map { $0.cpu - $1 }
        guard origin.asked - asked == fetches else {
            throw Problem("\(machines.kind.rawValue): \(origin.asked - asked) fetches instead of \(fetches)")
        }
        var cost = Cost(own: spent[index].total / Double(paths.count))
        if let engine, let tree = machines.engine { cost.other = (tree.cpu - engine).total / Double(paths.count) }
        if machines.kind == .nginx, index > 0 { cost.other = spent[0].total / Double(paths.count) }
        return cost
    }

    /// How long a client waits, one request after another.
    private mutating func times() throws {
        let shared = try Machines(.shared, count: 2, origin: origin.port, plan: plan)
        let alone = try Machines(.alone, count: 1, origin: origin.port, plan: plan)
        let paths = paths(pages / 2, 1024)
        func measure(_ port: Int) -> String {
            guard let caller = Caller(port: port, host: Machines.host) else { return "—" }
            let times = paths.map { path in
                let began = System.now
                caller.ask(path)
                _ = caller.answer()
                return Double(System.now - began) / 1000
            }
            return "\(times.median.short), \(times.percentile(99).short)"
        }
        add("1 KiB, µs p50, p99 of a miss without a tier", measure(alone.machines[0].port))
        add("1 KiB, µs p50, p99 of a miss that leads", measure(shared.machines[0].port))
        System.nap(milliseconds: 300)
        add("1 KiB, µs p50, p99 of a hit from the tier", measure(shared.machines[1].port))
        add("1 KiB, µs p50, p99 of a hit in memory", measure(shared.machines[1].port))
        shared.stop()
        alone.stop()
    }

    /// From the origin's write to the client of the machine that fetches, and to one of another machine.
    private mutating func following() throws {
        let shared = try Machines(.shared, count: 2, origin: origin.port, plan: plan)
        var (leader, follower): ([[Double]], [[Double]]) = ([], [])
        for time in 0..<(plan.isQuick ? 10 : 60) {
            let crowds = shared.machines.map { Crowd(ports: [$0.port], count: 1, host: Machines.host) }
            origin.expectStorm()
            run += 1
            crowds[0].ask("/s/2048/follow\(run)")
            System.nap(milliseconds: 30)
            crowds[1].ask("/s/2048/follow\(run)")
            System.nap(milliseconds: 30)
            origin.release()
            let watched = time % 2
            let seen = crowds[watched].answers(within: 5)[0]
            let sent = origin.stormSeen
            guard seen.last > 0, sent.fetches == 1 else { throw Problem("\(sent.fetches) fetches of one page") }
            let times = [Double(seen.first - sent.firstByte) / 1000, Double(seen.last - sent.lastByte) / 1000]
            if watched == 0 { leader.append(times) } else { follower.append(times) }
        }
        func text(_ all: [[Double]], _ index: Int) -> String {
            let times = all.map { $0[index] }
            return "\(times.median.short), \(times.percentile(99).short)"
        }
        add("µs p50, p99 from the origin to a client of the machine that fetches: first bytes", text(leader, 0))
        add("µs p50, p99 from the origin to a client of another machine: first bytes", text(follower, 0))
        add("the same of later bytes: machine that fetches", text(leader, 1))
        add("the same of later bytes: another machine", text(follower, 1))
        shared.stop()
    }

    /// Three machines, a thousand clients each, one cold page.
    private mutating func crowd() throws {
        for (count, clients) in [(1, plan.isQuick ? 600 : 3000), (3, plan.isQuick ? 200 : 1000)] {
            let machines = try Machines(count == 1 ? .alone : .shared, count: count, origin: origin.port, plan: plan)
            var (first, last, cpu, redis, fetches) = ([Double](), [Double](), [Double](), [Double](), [Double]())
            for _ in 0..<3 {
                let crowd = Crowd(ports: machines.machines.map(\.port), count: clients, host: Machines.host)
                guard crowd.count == count * clients else { throw Problem("only \(crowd.count) clients were let in") }
                System.nap(milliseconds: 300)
                origin.expectStorm()
                let trees = machines.machines.map(\.tree)
                let (before, engine) = (trees.map(\.cpu), machines.engine?.cpu)
                run += 1
                crowd.ask("/s/2048/crowd\(run)")
                System.nap(milliseconds: 500)
                origin.release()
                let times = crowd.answers(within: 20)
                guard times.allSatisfy({ $0.last > 0 }) else { throw Problem("a client got no whole response") }
                let seen = origin.stormSeen
                first.append(Double((times.map(\.first).max() ?? 0) - seen.firstByte) / 1e6)
                last.append(Double((times.map(\.last).max() ?? 0) - seen.lastByte) / 1e6)
                let spent = zip(trees, before).reduce(0) { $0 + ($1.0.cpu - $1.1).total }
                cpu.append(spent / Double(times.count))
                if let engine, let tree = machines.engine { redis.append((tree.cpu - engine).total / 1000) }
                fetches.append(Double(seen.fetches))
            }
            let who = count == 1 ? "\(clients) clients of one machine" : "3 machines, \(clients) clients each"
            add("\(who): fetches", fetches.median.short)
            add("\(who): ms from the origin to the last client, first byte", "\(first.median.short), \(first.spread)")
            add("\(who): the same, last byte", "\(last.median.short), \(last.spread)")
            add("\(who): CPU µs a client", "\(cpu.median.short), \(cpu.spread)")
            if !redis.isEmpty { add("\(who): CPU ms of Redis in all", "\(redis.median.short), \(redis.spread)") }
            machines.stop()
        }
    }
}
