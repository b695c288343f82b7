import Foundation
import Synchronization

/// Machines that stand side by side: proxies that share a tier, or nginx in front of nginx. All servers run on core 0.
final class Machines {
    /// One proxy.
    struct Machine {
        let port: Int
        let tree: ProcessTree
        fileprivate let child: Child
    }

    /// What the machines are.
    enum Kind: String {
        /// coalesced with a tier of Redis.
        case shared = "coalesced and Redis"
        /// coalesced, each machine for itself.
        case alone = "coalesced without a tier"
        /// nginx. The first machine asks the origin, the others ask the first.
        case nginx = "nginx behind nginx"
    }

    /// All clients name one site, whichever machine they ask.
    static let host = "site.test"

    let kind: Kind
    private(set) var machines: [Machine] = []
    private(set) var engine: ProcessTree?
    private var engineChild: Child?
    private let folder: String

    private static let started = Atomic<Int>(0)

    init(_ kind: Kind, count: Int, origin: Int, plan: Plan) throws {
        self.kind = kind
        let number = Self.started.add(1, ordering: .relaxed).newValue
        folder = "\(plan.folder)/machines-\(number)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        if kind == .shared { try startEngine() }
        for index in 0..<count {
            let port = 20_000 + (Int(getpid()) * 37 + 100 * number + index) % 10_000
            let words: [String]
            switch kind {
            case .shared, .alone:
                let file = try write("\(index).yaml", settings(index, port: port, origin: origin))
                words = [plan.coalesced, "serve", "--config", file]
            case .nginx:
                let next = machines.first?.port ?? origin
                let file = try write("\(index).conf", nginx(index, port: port, next: next))
                words = ["/usr/sbin/nginx", "-p", folder, "-c", file]
            }
            let child = try start(words, "\(index)")
            machines.append(Machine(port: port, tree: ProcessTree(root: child.identifier), child: child))
            try wait("\(kind.rawValue) does not answer", child) {
                Caller.fetch(["/p/1/start"], size: 1, port: port, host: Self.host)
            }
        }
        if kind == .shared {
            try wait("the tier is not in use", machines[0].child) {
                machines.indices.allSatisfy { index in
                    let status = Shell.output([plan.coalesced, "status", "--json", "--admin", admin(index)]) ?? ""
                    return status.contains("\"connections\": 2,") && status.contains("\"knows_purges\": true")
                }
            }
        }
    }

    deinit { stop() }

    func stop() {
        for machine in machines { machine.child.stop() }
        machines = []
        engineChild?.stop()
        engineChild = nil
    }

    private func admin(_ index: Int) -> String { "unix:\(folder)/admin-\(index).sock" }

    private func write(_ name: String, _ text: String) throws -> String {
        try text.write(toFile: "\(folder)/\(name)", atomically: false, encoding: .utf8)
        return "\(folder)/\(name)"
    }

    /// The program ends too if this process is killed.
    private func start(_ words: [String], _ name: String) throws -> Child {
        try Child(["setpriv", "--pdeathsig", "TERM", "taskset", "-c", "0"] + words, output: "\(folder)/output-\(name)")
    }

    private func wait(_ problem: String, _ child: Child, _ condition: () -> Bool) throws {
        for _ in 0..<500 {
            if condition() { return }
            guard child.isRunning else { break }
            System.nap(milliseconds: 20)
        }
        let told =
            (try? FileManager.default.contentsOfDirectory(atPath: folder))?.filter { $0.hasPrefix("output") }
            .compactMap { try? String(contentsOfFile: "\(folder)/\($0)", encoding: .utf8) }.joined() ?? ""
        throw Problem("\(problem): \(told.suffix(400))")
    }

    // MARK: Configurations

    private func startEngine() throws {
        let child = try start(
            [
                "redis-server", "--port", "0", "--unixsocket", "\(folder)/engine.sock", "--save", "", "--appendonly",
                "no",
                "--maxmemory", "2gb", "--maxmemory-policy", "volatile-lfu", "--dir", folder,
            ], "engine")
        engineChild = child
        engine = ProcessTree(root: child.identifier)
        try wait("redis-server does not start", child) {
            FileManager.default.fileExists(atPath: "\(folder)/engine.sock")
        }
    }

    /// Bytes that the engine has in use (`used_memory`).
    var engineBytes: Int {
        let told = Shell.output(["redis-cli", "-s", "\(folder)/engine.sock", "INFO", "memory"]) ?? ""
        let line = told.split(whereSeparator: \.isNewline).first { $0.hasPrefix("used_memory:") }
        return line.flatMap { Int($0.dropFirst("used_memory:".count)) } ?? 0
    }

    private func settings(_ index: Int, port: Int, origin: Int) -> String {
        """
        workers: 1
        listen: [127.0.0.1:\(port)]
        clients: {max-connections: 19000}
        coalescing: {max-waiters: 20000}
        storage: {memory: 1GiB}
        admin: {address: "\(admin(index))"}
        access-log: {target: \(folder)/access-\(index).log}
        upstreams: [{name: origin, servers: ["http://127.0.0.1:\(origin)"]}]
        \(kind == .shared ? "shared: {engine: \"unix:\(folder)/engine.sock\"}" : "")

        """
    }

    private func nginx(_ index: Int, port: Int, next: Int) -> String {
        let cache = "/dev/shm/proxy-bench-\(port)"
        try? FileManager.default.removeItem(atPath: cache)
        return """
            daemon off;
            worker_processes 1;
            worker_rlimit_nofile 20000;
            pid \(folder)/\(index).pid;
            error_log \(folder)/error-\(index).log crit;
            events { worker_connections 19000; }
            http {
              access_log off; sendfile off; tcp_nopush off;
              open_file_cache max=15000 inactive=60s; open_file_cache_valid 60s;
              keepalive_requests 1000000000;
              client_body_temp_path \(folder)/body-\(index);
              proxy_temp_path \(folder)/temp-\(index);
              proxy_cache_path \(cache) levels=1:2 keys_zone=memory:64m max_size=1024m use_temp_path=off;
              upstream next { server 127.0.0.1:\(next); keepalive 256; keepalive_requests 1000000000; }
              server {
                listen 127.0.0.1:\(port) backlog=16384;
                proxy_http_version 1.1;
                proxy_set_header Connection "";
                proxy_cache memory;
                proxy_cache_key $request_uri;
                location / { proxy_pass http://next; }
              }
            }

            """
    }
}
