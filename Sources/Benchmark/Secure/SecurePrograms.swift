import Foundation
import Synchronization

/// A proxy that listens in the clear and with TLS, with the same certificate as the others. It runs on core 0.
final class SecureProgram {
    enum Kind: String, CaseIterable {
        case coalesced, nginx
        case haproxy = "HAProxy"

        var isInstalled: Bool { self == .coalesced || Shell.has(self == .nginx ? "nginx" : "haproxy") }
    }

    let kind: Kind
    /// The ports for HTTP/1.1 in the clear, HTTP/2 in the clear, and both over TLS.
    let plain: Int
    let framed: Int
    let secure: Int
    let tree: ProcessTree
    private let child: Child

    private static let started = Atomic<Int>(0)

    /// - Parameter originIsSecure: whether the origin at `origin` speaks TLS.
    init(_ kind: Kind, origin: Int, originIsSecure: Bool = false, certificate: String, plan: Plan) throws {
        self.kind = kind
        let number = Self.started.add(3, ordering: .relaxed).newValue
        plain = 20_000 + (Int(getpid()) * 37 + number) % 10_000
        secure = plain + 1
        // A port in the clear where nginx speaks HTTP/2 has nothing else.
        framed = kind == .nginx ? plain + 2 : plain
        let folder = "\(plan.folder)/secure-\(number)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        let (name, text): (String, String) =
            switch kind {
            case .coalesced:
                ("settings.yaml", Self.coalesced(plain, secure, origin, originIsSecure, certificate, folder))
            case .nginx: ("nginx.conf", Self.nginx(plain, framed, secure, origin, originIsSecure, certificate, folder))
            case .haproxy: ("haproxy.cfg", Self.haproxy(plain, secure, origin, originIsSecure, certificate))
            }
        try text.write(toFile: "\(folder)/\(name)", atomically: false, encoding: .utf8)
        let words =
            switch kind {
            case .coalesced: [plan.coalesced, "serve", "--config", "\(folder)/\(name)"]
            case .nginx: ["/usr/sbin/nginx", "-p", folder, "-c", "\(folder)/\(name)"]
            case .haproxy: ["/usr/sbin/haproxy", "-db", "-f", "\(folder)/\(name)"]
            }
        child = try Child(
            ["setpriv", "--pdeathsig", "TERM", "taskset", "-c", "0"] + words, output: "\(folder)/output")
        tree = ProcessTree(root: child.identifier)
        for _ in 0..<500 {
            if let caller = SecureCaller(port: plain, nil) {
                caller.ask("/p/1/start")
                if caller.answer(1) { return }
            }
            guard child.isRunning else { break }
            System.nap(milliseconds: 20)
        }
        child.stop()
        let told = (try? String(contentsOfFile: "\(folder)/output", encoding: .utf8)) ?? ""
        throw Problem("\(kind.rawValue) does not answer: \(told.suffix(400))")
    }

    func stop() { child.stop() }

    /// Makes the certificate of all programs.
    /// - Returns: the path, without `.pem`, `.key`, or `.both` for both in one file.
    static func certificate(_ plan: Plan) throws -> String {
        guard Shell.has("openssl") else { throw Problem("openssl is not installed: apt install openssl") }
        let path = "\(plan.folder)/site"
        let words = [
            "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
            "-keyout", "\(path).key", "-out", "\(path).pem", "-days", "2", "-subj", "/CN=bench.test",
        ]
        _ = Shell.output(words)
        guard let key = try? String(contentsOfFile: "\(path).key", encoding: .utf8),
            let text = try? String(contentsOfFile: "\(path).pem", encoding: .utf8)
        else { throw Problem("openssl makes no certificate") }
        try (text + key).write(toFile: "\(path).both", atomically: false, encoding: .utf8)
        return path
    }

    /// The figures of each program, whose turns alternate.
    static func figures<Figure>(
        _ programs: [SecureProgram], turns: Int, _ measure: (SecureProgram) throws -> Figure
    ) rethrows -> [SecureProgram.Kind: [Figure]] {
        var figures: [SecureProgram.Kind: [Figure]] = [:]
        for turn in 0..<turns {
            for program in turn % 2 == 0 ? programs : programs.reversed() {
                figures[program.kind, default: []].append(try measure(program))
            }
        }
        return figures
    }

    private static func coalesced(
        _ plain: Int, _ secure: Int, _ origin: Int, _ originIsSecure: Bool, _ certificate: String, _ folder: String
    ) -> String {
        """
        workers: 1
        listen: ["127.0.0.1:\(plain)", "https://127.0.0.1:\(secure)"]
        admin: {address: "unix:\(folder)/admin.sock"}
        access-log: {target: "off"}
        tls: {certificates: [{certificate: \(certificate).pem, key: \(certificate).key}]}
        upstreams:
          - name: origin
            servers: ["\(originIsSecure ? "https" : "http")://127.0.0.1:\(origin)"]\(originIsSecure ? "\n    tls: {verify: off}" : "")

        """
    }

    private static func nginx(
        _ plain: Int, _ framed: Int, _ secure: Int, _ origin: Int, _ originIsSecure: Bool, _ certificate: String,
        _ folder: String
    ) -> String {
        """
        daemon off;
        worker_processes 1;
        pid \(folder)/nginx.pid;
        error_log \(folder)/error.log crit;
        events { worker_connections 9000; }
        http {
          access_log off;
          keepalive_requests 1000000000;
          proxy_temp_path \(folder)/temp;
          client_body_temp_path \(folder)/body;
          proxy_cache_path \(folder)/cache levels=1:2 keys_zone=memory:64m use_temp_path=off;
          ssl_protocols TLSv1.2 TLSv1.3;
          ssl_session_cache off;
          ssl_certificate \(certificate).pem;
          ssl_certificate_key \(certificate).key;
          upstream origin { server 127.0.0.1:\(origin); keepalive 256; keepalive_requests 1000000000; }
          server {
            listen 127.0.0.1:\(plain) backlog=4096;
            listen 127.0.0.1:\(framed) http2 backlog=4096;
            listen 127.0.0.1:\(secure) ssl http2 backlog=4096;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_cache memory;
            proxy_ssl_verify off;
            location / { proxy_pass \(originIsSecure ? "https" : "http")://origin; }
          }
        }

        """
    }

    private static func haproxy(
        _ plain: Int, _ secure: Int, _ origin: Int, _ originIsSecure: Bool, _ certificate: String
    ) -> String {
        """
        global
          nbthread 1
          maxconn 9900
          tune.ssl.cachesize 0
        defaults
          mode http
          timeout client 60s
          timeout server 60s
          timeout connect 5s
          http-reuse always
        cache memory
          total-max-size 256
          max-object-size 2000000
          max-age 3600
        frontend clients
          bind 127.0.0.1:\(plain) backlog 4096
          bind 127.0.0.1:\(secure) backlog 4096 ssl crt \(certificate).both alpn h2,http/1.1
          default_backend origin
        backend origin
          http-request cache-use memory
          http-response cache-store memory
          server origin 127.0.0.1:\(origin)\(originIsSecure ? " ssl verify none" : "")

        """
    }
}
