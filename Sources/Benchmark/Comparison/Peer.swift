import Foundation

/// The configuration and the start of each program: in the way that its manual calls fast, storing in memory, without
/// an access log except coalesced's; or, for `Program.Options.isAsPackaged`, in the way most people run it.
enum Peer {
    /// Writes the program's configuration into `folder`. Returns the command that starts the program in the foreground.
    static func command(
        _ kind: Kind, _ options: Program.Options, port: Int, origin: Int, folder: String, plan: Plan
    ) throws -> [String] {
        func write(_ name: String, _ text: String) throws -> String {
            try text.write(toFile: "\(folder)/\(name)", atomically: false, encoding: .utf8)
            return "\(folder)/\(name)"
        }
        switch kind {
        case .bare:
            return [plan.bare, "\(port)", "\(options.bodyBytes)"] + options.words
                + (options.words == ["relaying"] ? ["\(origin)"] : [])
        case .coalesced:
            let file = try write("settings.yaml", coalesced(options, port: port, origin: origin, folder: folder))
            return [plan.coalesced, "serve", "--config", file]
        case .haproxy:
            let file = try write("haproxy.cfg", haproxy(options, port: port, origin: origin, folder: folder))
            // HAProxy can only be reloaded with a master process beside its worker.
            let words = ["/usr/sbin/haproxy"] + (options.reloads ? ["-W"] : []) + ["-db", "-f", file]
            guard options.isAsPackaged else { return words }
            return ["sh", "-c", "exec \"$@\" >>\(folder)/access.log", "sh"] + words
        case .nginx:
            let file = try write("nginx.conf", nginx(options, port: port, origin: origin, folder: folder))
            return ["/usr/sbin/nginx", "-p", folder, "-c", file]
        case .varnish:
            let file = try write(
                "default.vcl",
                """
                vcl 4.1;
                backend default { .host = "127.0.0.1"; .port = "\(origin)"; }

                """)
            let words = [
                "/usr/sbin/varnishd", "-F", "-j", "none", "-n", "\(folder)/work", "-a", "127.0.0.1:\(port)", "-f", file,
                "-s", "malloc,\(options.memoryMiB)m", "-T", "none", "-p", "listen_depth=16384",
            ]
            guard options.isAsPackaged else { return words + ["-p", "thread_pools=\(options.workers)"] }
            // The program beside Varnish that writes the lines of Varnish's log in memory to a file.
            let logger = "setpriv --pdeathsig TERM varnishncsa -t 20 -n \(folder)/work -a -w \(folder)/access.log"
            return ["sh", "-c", "\(logger) & exec \"$@\"", "sh"] + words
        }
    }

    private static func coalesced(_ options: Program.Options, port: Int, origin: Int, folder: String) -> String {
        """
        workers: \(options.workers)
        listen: [127.0.0.1:\(port)]
        clients: {max-connections: 19000}
        coalescing: {max-waiters: 20000}
        storage: {memory: \(options.memoryMiB)MiB}
        admin: {address: "unix:\(folder)/admin.sock"}
        access-log: {target: \(folder)/access.log}
        upstreams:
          - name: origin
            servers: [http://127.0.0.1:\(origin)]

        """
    }

    private static func haproxy(_ options: Program.Options, port: Int, origin: Int, folder: String) -> String {
        """
        global
          nbthread \(options.workers)
          maxconn 9900\(options.isAsPackaged ? "\n  log stdout format raw local0" : "")\(options.reloads ? "\n  stats socket \(folder)/admin.sock mode 600 level admin expose-fd listeners" : "")
        defaults
          mode http\(options.isAsPackaged ? "\n  log global\n  option httplog\n  option dontlognull" : "")
          timeout client 60s
          timeout server 60s
          timeout connect 5s
          option http-keep-alive
          http-reuse always
        cache memory
          total-max-size \(options.memoryMiB)
          max-object-size 2000000
          max-age 3600
        frontend clients
          bind 127.0.0.1:\(port) backlog 16384
          default_backend origin
        backend origin
          http-request cache-use memory
          http-response cache-store memory
          server origin 127.0.0.1:\(origin)

        """
    }

    private static func nginx(_ options: Program.Options, port: Int, origin: Int, folder: String) -> String {
        let cache = "/dev/shm/proxy-bench-\(port)"
        try? FileManager.default.removeItem(atPath: cache)
        // A file takes whole pages, of which 1 KiB uses a quarter. Where memory is meant to be short, pages hardly
        // matter.
        let size = options.memoryMiB < 64 ? options.memoryMiB : 4 * options.memoryMiB
        return """
            daemon off;
            worker_processes \(options.workers);
            worker_rlimit_nofile 20000;
            pid \(folder)/nginx.pid;
            error_log \(folder)/error.log crit;
            events { worker_connections 19000; }
            http {
              \(options.isAsPackaged ? packagedNginx(folder) : fastNginx)
              keepalive_requests 1000000000;
              client_max_body_size 0;
              client_body_temp_path \(folder)/body;
              proxy_temp_path \(folder)/temp;
              proxy_cache_path \(cache) levels=1:2 keys_zone=memory:64m max_size=\(size)m use_temp_path=off;
              upstream origin { server 127.0.0.1:\(origin); keepalive 256; keepalive_requests 1000000000; }
              server {
                listen 127.0.0.1:\(port) backlog=16384;
                proxy_http_version 1.1;
                proxy_set_header Connection "";
                proxy_request_buffering off;
                proxy_cache memory;
                # The origin does not say Accept-Ranges, and without it nginx would send the whole.
                proxy_force_ranges on;
                location / { proxy_pass http://origin; }
                location /c/102400/hit { sendfile on; proxy_pass http://origin; }
                location /c/1048576/hit { sendfile on; proxy_pass http://origin; }
                proxy_cache_lock_timeout 60s;
                proxy_cache_lock_age 60s;
                location /s/ { proxy_pass http://origin; proxy_cache_lock on; }
                location /w/ { proxy_pass http://origin; proxy_cache_lock on; }
              }
            }

            """
    }

    /// The settings that cost nginx least. They are not the ones that its manual suggests (sendfile and tcp_nopush on):
    /// a small response goes in one write without sendfile, a large one is more expensive without sendfile. With
    /// tcp_nopush, the end of 100 KiB and of pipelined batches waits for a delayed acknowledgement.
    private static let fastNginx = """
        access_log off; sendfile off; tcp_nopush off;
        open_file_cache max=15000 inactive=60s; open_file_cache_valid 60s;
        """

    /// The settings of Debian's `nginx.conf` that concern the cost of a response.
    private static func packagedNginx(_ folder: String) -> String {
        "access_log \(folder)/access.log; sendfile on; tcp_nopush on; gzip on;"
    }

    /// Removes the files that `make bench` leaves in memory, apart from the folder.
    static func cleanUp() {
        for name in (try? FileManager.default.contentsOfDirectory(atPath: "/dev/shm")) ?? []
        where name.hasPrefix("proxy-bench-") {
            try? FileManager.default.removeItem(atPath: "/dev/shm/\(name)")
        }
    }

    /// The commit of this working copy, and whether the copy's measured code differs from the commit.
    static var commit: String {
        guard let name = Shell.output(["git", "rev-parse", "--short", "HEAD"])?.split(separator: "\n").first,
            !name.contains(" ")
        else { return "" }
        let changes = Shell.output(["git", "status", "--porcelain", "--", "Sources", "Package.swift"]) ?? ""
        return ", commit \(name)\(changes.isEmpty ? "" : " with changes")"
    }

    static func version(_ kind: Kind, _ plan: Plan) -> String {
        let words: [String] =
            switch kind {
            case .coalesced: [plan.coalesced, "--version"]
            case .bare: ["uname", "-r"]
            case .haproxy: ["/usr/sbin/haproxy", "-v"]
            case .nginx: ["/usr/sbin/nginx", "-v"]
            case .varnish: ["/usr/sbin/varnishd", "-V"]
            }
        let told = Shell.output(words)?.split(separator: "\n").first.map(String.init) ?? "not installed"
        switch kind {
        case .bare: return "Linux \(told)"
        case .coalesced: return told + commit
        case .haproxy, .nginx, .varnish: return told
        }
    }
}
