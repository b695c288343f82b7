import CertificateMaking
import Testing

/// Programs of others, with no setting but the authority that they are to trust.
@Suite(.scenario) struct RealClientTests {
    private func run(_ body: (SecureSite) throws -> Void) throws {
        try SecureSite.run(identities: [TestIdentity.authority.identity(for: "localhost", "127.0.0.1")]) { site in
            site.origin.on("/large") { _ in [.answer(200, "Cache-Control: max-age=600", pattern: 3_000_000)] }
            site.origin.on("/upload") { request in [.requestBody, .answer(200, body: "taken")] }
            try body(site)
        }
    }

    @Test(arguments: ["--tlsv1.3", "--tls-max=1.2"])
    func `curl asks, keeps its connection, and uploads`(_ version: String) throws {
        try run { site in
            let flags = version.split(separator: "=").map(String.init)
            let folder = site.folder
            func curl(_ words: [String]) throws -> Command.Run {
                let common = ["curl", "-sS", "--max-time", "20", "--cacert", "\(folder)/authority.pem"]
                return try Command.run(common + flags + words)
            }
            let base = "https://localhost:\(site.port)"
            #expect(try curl(["\(base)/x"]).output == "hello")
            let two = try curl(["-v", "\(base)/x", "\(base)/x"])
            #expect(two.output == "hellohello" && two.errors.contains("Re-using existing connection"))
            try System.write([UInt8](repeating: 0x61, count: 2_000_000), to: "\(folder)/upload")
            #expect(try curl(["-T", "\(folder)/upload", "\(base)/upload"]).output == "taken")
            #expect(site.origin.requests("/upload").last?.body.length == 2_000_000)
            let large = try curl(["-o", "/dev/null", "-w", "%{size_download} %{exitcode}", "\(base)/large"])
            #expect(large.output == "3000000 0")
            // The end of the stream is told: curl complains otherwise.
            let last = try curl(["-H", "Connection: close", "\(base)/x"])
            #expect(last.output == "hello" && last.exit == .code(0))
        }
    }

    @Test func `Python's requests keep a session`() throws {
        try run { site in
            let script = """
                import functools, requests, sys, warnings
                warnings.simplefilter("error")
                base = "https://localhost:" + sys.argv[1]
                with requests.Session() as session:
                    # Unlike `session.verify`, the argument goes before REQUESTS_CA_BUNDLE.
                    get, post = (
                        functools.partial(call, verify=sys.argv[2], timeout=20)
                        for call in (session.get, session.post))
                    for _ in range(5):
                        assert get(base + "/x").text == "hello"
                    assert len(get(base + "/large").content) == 3000000
                    assert post(base + "/upload", data=b"a" * 500000).text == "taken"
                print("done")
                """
            let python = try Python(script, importing: "requests", "\(site.port)", "\(site.folder)/authority.pem")
            try eventually("it ends", within: .seconds(30)) { python.exit != nil }
            #expect(python.lines == ["done"] && python.errors == "", "\(python.errors)")
        }
    }

    @Test func `Node's fetch and https work`() throws {
        try run { site in
            let script = """
                const https = require("https");
                const base = "https://localhost:\(site.port)";
                (async () => {
                  for (let i = 0; i < 3; i++) {
                    const text = await (await fetch(base + "/x")).text();
                    if (text !== "hello") throw new Error(text);
                  }
                  const body = await (await fetch(base + "/large")).arrayBuffer();
                  if (body.byteLength !== 3000000) throw new Error("" + body.byteLength);
                  const sent = await (await fetch(base + "/upload", {method: "POST", body: "a".repeat(500000)})).text();
                  if (sent !== "taken") throw new Error(sent);
                  https.get(base + "/x", response => response.on("data", part => process.stdout.write(part)));
                })();
                """
            try System.write(script, to: "\(site.folder)/script.js")
            let run = try Command.run(
                ["env", "NODE_EXTRA_CA_CERTS=\(site.folder)/authority.pem", "node", "\(site.folder)/script.js"])
            #expect(run.exit == .code(0) && run.output == "hello" && run.errors == "", "\(run.everything)")
        }
    }

    private static let browser = "/usr/bin/chromium-headless-shell"

    @Test(.enabled(if: System.isExecutable(browser), "`make browser` installs it"))
    func `Chromium shows a page, and warns of nothing but the authority of the tests`() throws {
        try run { site in
            func page(_ profile: String, _ flags: [String]) throws -> String {
                let common = [
                    Self.browser, "--no-sandbox", "--disable-gpu", "--user-data-dir=\(site.folder)/\(profile)",
                ]
                return try Command.run(
                    common + flags + ["--dump-dom", "https://localhost:\(site.port)/x"], within: .seconds(90)
                ).output
            }
            // The hash of the key that it is to believe, whoever has signed the certificate.
            let key = "openssl x509 -in \(site.folder)/site0.pem -pubkey -noout | openssl pkey -pubin -outform der"
            let hash = try Command.run(["sh", "-c", "\(key) | openssl dgst -sha256 -binary | base64 | tr -d '\\n'"])
                .output
            let believed = try page("believing", ["--ignore-certificate-errors-spki-list=\(hash)"])
            #expect(believed.contains("hello"), "\(believed)")
            let refused = try page("usual", [])
            #expect(!refused.contains("hello"), "\(refused)")
        }
    }

    @Test func `Java's client works`() throws {
        try run { site in
            let script = """
                import java.io.*;
                import java.net.*;
                import java.net.http.*;
                import java.security.*;
                import java.security.cert.*;
                import javax.net.ssl.*;

                public class Client {
                    public static void main(String[] words) throws Exception {
                        KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
                        store.load(null, null);
                        try (InputStream file = new FileInputStream(words[1])) {
                            store.setCertificateEntry(
                                "ca", CertificateFactory.getInstance("X.509").generateCertificate(file));
                        }
                        TrustManagerFactory trust = TrustManagerFactory.getInstance("PKIX");
                        trust.init(store);
                        SSLContext context = SSLContext.getInstance("TLS");
                        context.init(null, trust.getTrustManagers(), null);
                        HttpClient client = HttpClient.newBuilder().sslContext(context).build();
                        String base = "https://localhost:" + words[0];
                        for (int i = 0; i < 3; i++) {
                            HttpRequest request = HttpRequest.newBuilder(URI.create(base + "/x")).build();
                            System.out.print(client.send(request, HttpResponse.BodyHandlers.ofString()).body());
                        }
                        HttpRequest large = HttpRequest.newBuilder(URI.create(base + "/large")).build();
                        System.out.print(client.send(large, HttpResponse.BodyHandlers.ofByteArray()).body().length);
                        HttpRequest upload = HttpRequest.newBuilder(URI.create(base + "/upload"))
                            .POST(HttpRequest.BodyPublishers.ofByteArray(new byte[500000])).build();
                        System.out.print(client.send(upload, HttpResponse.BodyHandlers.ofString()).body());
                    }
                }
                """
            try System.write(script, to: "\(site.folder)/Client.java")
            let run = try Command.run(
                ["java", "\(site.folder)/Client.java", "\(site.port)", "\(site.folder)/authority.pem"],
                within: .seconds(60))
            #expect(run.output == "hellohellohello3000000taken", "\(run.everything)")
        }
    }
}
