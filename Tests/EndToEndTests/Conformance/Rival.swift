import Glibc

/// Another caching proxy on this machine, set up to do what it can of what coalesced does.
final class Rival: Peer, Sendable {
    let folder: String
    private let child: pid_t

    var endpoint: Endpoint { .unix("\(folder)/rival.sock") }
    var diagnostics: String { System.contents(of: "\(folder)/stderr") + System.contents(of: "\(folder)/stdout") }

    private init(_ path: String, _ arguments: [String], folder: String) throws {
        self.folder = folder
        child = try Spawn.start(path, arguments, output: "\(folder)/stdout", errors: "\(folder)/stderr")
        do {
            try eventually("\(path) accepts") { (try? connect()) != nil }
        } catch {
            let said = diagnostics
            stop()
            throw Silent(said: said)
        }
    }

    struct Silent: Error, CustomStringConvertible {
        let said: String
        var description: String { "it does not accept:\n\(said)" }
    }

    func stop() {
        Spawn.signal(child, SIGTERM)
        let end = Instant.now + .seconds(3)
        while Spawn.poll(child) == nil {
            if .now > end { Spawn.signal(child, SIGKILL) }
            System.nap(.milliseconds(2))
        }
        System.removeFolder(folder)
    }

    // MARK: - nginx

    static let nginxPath = installed("nginx")

    static func nginx(before origin: ScriptedOrigin, at path: String) throws -> Rival {
        let folder = try System.makeTemporaryFolder()
        try System.write(
            """
            daemon off;
            user root;
            worker_processes 1;
            pid \(folder)/nginx.pid;
            error_log stderr crit;
            events { worker_connections 4096; }
            http {
              access_log off;
              client_body_temp_path \(folder)/bodies;
              proxy_temp_path \(folder)/temporary;
              proxy_cache_path \(folder)/cache keys_zone=cache:10m;
              server {
                listen unix:\(folder)/rival.sock;
                location / {
                  proxy_pass \(origin.url);
                  proxy_http_version 1.1;
                  proxy_set_header Host $http_host;
                  proxy_set_header Connection "";
                  proxy_cache cache;
                  proxy_cache_key $http_host$request_uri;
                  proxy_cache_revalidate on;
                  proxy_cache_lock on;
                  proxy_cache_background_update on;
                }
              }
            }
            """, to: "\(folder)/nginx.conf")
        return try Rival(path, ["-e", "stderr", "-p", folder, "-c", "\(folder)/nginx.conf"], folder: folder)
    }

    // MARK: - Varnish

    static let varnishPath = installed("varnishd")

    static func varnish(before origin: ScriptedOrigin, at path: String) throws -> Rival {
        let folder = try System.makeTemporaryFolder()
        try System.write(
            """
            vcl 4.1;
            backend default { .host = "127.0.0.1"; .port = "\(origin.port)"; }
            """, to: "\(folder)/rival.vcl")
        return try Rival(
            path,
            [
                "-F", "-j", "none", "-n", "\(folder)/work", "-a", "\(folder)/rival.sock,mode=666", "-f",
                "\(folder)/rival.vcl", "-s", "malloc,64m", "-p", "default_ttl=0",
                "-p", "default_grace=0", "-p", "default_keep=1000",
            ], folder: folder)
    }

    private static func installed(_ name: String) -> String? {
        let folders = (System.environment("PATH") ?? "").split(separator: ":") + ["/usr/sbin", "/usr/local/sbin"]
        return folders.map { "\($0)/\(name)" }.first { System.isExecutable($0) }
    }
}
