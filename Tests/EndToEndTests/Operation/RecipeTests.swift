import Glibc
import Testing

/// The recipes of docs/operating.md, as they stand there, with the programs they are for. `make test` installs these.
@Suite(.scenario) struct RecipeTests {
    @Test func `gunicorn gives hits, one fetch for simultaneous clients, and a kept connection`() throws {
        try expectSharing("gunicorn", files: ["app.py": Self.wsgi])
    }

    @Test func `uvicorn gives hits, one fetch for simultaneous clients, and a kept connection`() throws {
        try expectSharing("uvicorn", files: ["app.py": Self.asgi])
    }

    @Test func `Node gives hits, one fetch for simultaneous clients, and a kept connection`() throws {
        let recipe = try Recipe("Node")
        try expectSharing(recipe, "node app.js", files: ["app.js": Self.node + recipe.block("js")])
    }

    @Test func `Puma gives hits, one fetch for simultaneous clients, and a kept connection`() throws {
        let recipe = try Recipe("Puma")
        try expectSharing(
            recipe, "mkdir config && mv puma.rb config && puma",
            files: ["config.ru": Self.rack, "puma.rb": recipe.block("ruby")])
    }

    @Test func `nginx compresses for clients that accept gzip, and for no others`() throws {
        let recipe = try Recipe("nginx")
        let configuration = """
            \(getuid() == 0 ? "user root;" : "") daemon off; pid nginx.pid; error_log stderr;
            events {}
            http {
                types { text/html html; }
                access_log off; client_body_temp_path t1; proxy_temp_path t2; fastcgi_temp_path t3; uwsgi_temp_path t4; scgi_temp_path t5;
                \(recipe.block("nginx"))
                server { listen 127.0.0.1:9000; root .; }
            }

            """
        let page = String(repeating: "<p>The same again.</p>\n", count: 200)
        try serve(
            recipe,
            "touch -d '10 days ago' page.html && mkdir dir && PATH=$PATH:/usr/sbin nginx -e stderr -p . -c nginx.conf",
            files: ["nginx.conf": configuration, "page.html": page], ready: "/page.html"
        ) { proxy in
            let packed = try proxy.get("/page.html", "Accept-Encoding: gzip")
            #expect(packed["content-encoding"] == "gzip" && packed["vary"] == "Accept-Encoding")
            let plain = try proxy.get("/page.html")
            #expect(plain["content-encoding"] == nil && plain.text == page)
            for fields in [["Accept-Encoding: gzip"], []] {
                let hit = try proxy.send("GET", "/page.html", fields)
                #expect(hit["cache-status"]?.contains("; hit") == true, "\(fields)")
                #expect(hit["content-encoding"] == (fields.isEmpty ? nil : "gzip"))
            }
            #expect(try proxy.get("/dir")["location"] == "/dir/")
        }
    }

    @Test(.clientsInTheClear("TLS ends in front of the program"))
    func `Django shares the pages that it permits but no forms, and does not redirect behind TLS`() throws {
        let (recipe, server) = (try Recipe("Django"), try Recipe("gunicorn"))
        let start = server.block("sh").replacing("app:app", with: "site_for_tests:application")
        try serve(
            recipe, start,
            files: [
                "settings.py": Self.djangoSettings + recipe.block("python"), "site_for_tests.py": Self.django,
            ], ready: "/page"
        ) { proxy in
            let https = "X-Forwarded-Proto: https"
            let page = try proxy.get("/page", https)
            let again = try proxy.get("/page", https)
            #expect(page.status == 200 && again.text == page.text)
            #expect(again["cache-status"]?.contains("; hit") == true, "\(again["cache-status"] ?? "")")
            // By http it sends them away, to the same host.
            let redirect = try proxy.get("/page", "Host: shop.example")
            #expect(redirect.status == 301 && redirect["location"] == "https://shop.example/page")
            let forms = try [proxy.get("/form", https), proxy.get("/form", https)]
            #expect(forms[0].status == 200 && forms[0].text != forms[1].text)
            // With a session, nothing that is stored.
            let mine = try proxy.get("/page", https, "Cookie: sessionid=1")
            #expect(mine.text != page.text && mine["cache-status"]?.contains("pass-cookie") == true)
        }
    }

    @Test func `WordPress visitors share pages, and logged-in users get their own`() throws {
        let recipe = try Recipe("WordPress")
        // The database ends with the shell, and so with what takes its place.
        let start = """
            mariadb-install-db --no-defaults --datadir=@/db --skip-test-db --user=$(id -un) >/dev/null && \
            { PATH=$PATH:/usr/sbin setpriv --pdeathsig KILL mariadbd --no-defaults --user=$(id -un) --datadir=@/db \
            --socket=@/s --skip-networking --skip-grant-tables & } && cp -rL /usr/share/wordpress site && \
            mkdir site/wp-content/themes/plain && mv index.php style.css site/wp-content/themes/plain && \
            mv wp-config.php make.php site && while ! test -S s; do sleep 0.1; done && \
            php -d sendmail_path=/bin/true site/make.php && php -S 127.0.0.1:9000 -t site
            """
        try serve(recipe, start, files: Self.wordpress, ready: "/wp-login.php") { proxy in
            let first = try proxy.get("/?p=1&utm_source=mail")
            #expect(first.status == 200 && first.text.hasPrefix("a visitor"), "\(first.text.prefix(300))")
            for target in ["/?p=1", "/?p=1&gclid=1", "/?utm_medium=x&p=1&fbclid=2"] {
                let again = try proxy.get(target)
                #expect(again.text == first.text, "\(target)")
            }
            let login = try proxy.send(
                "POST", "/wp-login.php", "Content-Type: application/x-www-form-urlencoded",
                body: "log=admin&pwd=secret")
            let cookies = (login.head?.all("set-cookie") ?? []).map { $0.prefix { $0 != ";" } }
            let loggedIn = "Cookie: \(cookies.joined(separator: "; "))"
            #expect(login.status == 302 && loggedIn.contains("wordpress_logged_in_"), "\(loggedIn)")
            for _ in 1...2 {
                let own = try proxy.get("/?p=1", loggedIn)
                #expect(own.text.hasPrefix("admin"), "\(own.text.prefix(300))")
            }
            #expect(try proxy.get("/?p=1").text == first.text)
            let page = try proxy.get("/wp-admin/profile.php", loggedIn)
            #expect(page.status == 200 && page.text.contains("admin"))
            #expect(page["cache-status"]?.contains("fwd=bypass") == true, "\(page["cache-status"] ?? "")")
        }
    }

    // MARK: - What all application servers are asked

    private func expectSharing(_ title: String, files: [String: String]) throws {
        let recipe = try Recipe(title)
        try expectSharing(recipe, recipe.block("sh"), files: files)
    }

    private func expectSharing(_ recipe: Recipe, _ command: String, files: [String: String]) throws {
        try serve(recipe, command, files: files, ready: "/own") { proxy in
            let page = try proxy.get("/page")
            let again = try proxy.get("/page")
            #expect(page.status == 200 && again.text == page.text)
            #expect(again["cache-status"]?.contains("; hit") == true, "\(again["cache-status"] ?? "")")

            let crowd = try (1...20).map { _ in try proxy.connect() }
            for client in crowd { try client.send(proxy.request("GET", "/slow")) }
            let answers = try Set(crowd.map { try $0.answer().text })
            #expect(answers.count == 1, "\(answers)")

            func connects() throws -> Double {
                try Program.sum("coalesced_upstream_connect_seconds_count", in: proxy.admin.get("/metrics").wholeText)
            }
            try proxy.get("/own")
            let before = try connects()
            // Longer than by default most of them keep a connection, in real time: it is theirs.
            System.nap(.milliseconds(5500))
            try proxy.get("/own")
            let after = try connects()
            #expect(after == before, "the origin has closed a connection")
            let posted = try proxy.send("POST", "/own", body: "hello")
            #expect(posted.status == 200)
        }
    }

    /// The program by a recipe, in front of what `command` starts in a folder with `files`.
    /// - Parameter ready: what the origin answers once it listens.
    private func serve(
        _ recipe: Recipe, _ command: String, files: [String: String], ready: String, _ ask: (Program) throws -> Void
    ) throws {
        let folder = try System.makeTemporaryFolder()
        defer { System.removeFolder(folder) }
        // Its own address of the loopback network, so that port 9000 is nobody else's.
        let address = Self.address(for: recipe.title)
        func placed(_ text: String) -> String {
            text.replacing("127.0.0.1:9000", with: "\(address):9000").replacing("@/", with: "\(folder)/")
        }
        for (name, text) in files {
            try System.write(
                placed(text).replacing("9000, \"127.0.0.1\"", with: "9000, \"\(address)\""), to: "\(folder)/\(name)")
        }
        let line = placed(command).replacing("--host 127.0.0.1", with: "--host \(address)")
        // The last of the commands takes the shell's place, that it is what gets the signal.
        var steps = line.split(separator: "&&").map { $0.trimmingPrefix { $0 == " " } }.map(String.init)
        let last = steps.removeLast()
        let path = last.hasPrefix("PATH=") ? "export \(last.prefix { $0 != " " }) && " : ""
        let program = last.hasPrefix("PATH=") ? String(last.drop { $0 != " " }) : last
        let shell = (["cd \(folder)"] + steps).joined(separator: " && ") + " && \(path)exec \(program)"
        let origin = try Origin(shell: shell, in: folder)
        defer { origin.stop() }
        let proxy = try Program.serve(
            file: placed(recipe.block("yaml")).replacing(
                "trusted-proxies: [127.0.0.1]", with: "trusted-proxies: [127.0.0.0/8]"),
            arguments: ["--workers", "1"])
        defer { proxy.stop() }
        try eventually("the origin answers", within: .seconds(60)) {
            let status = try proxy.get(ready, "Cache-Control: no-store").status
            guard status >= 500 else { return true }
            if let exit = origin.exit() {
                throw Missing(
                    what:
                        "\(exit), is it installed? `make test` installs it. \(System.contents(of: "\(folder)/errors").suffix(2000))"
                )
            }
            return false
        }
        try ask(proxy)
    }

    private struct Missing: Error, CustomStringConvertible {
        let what: String
        var description: String { "the origin of the recipe ended with \(what)" }
    }

    /// What a recipe starts. Asked by one thread.
    private final class Origin {
        private let child: pid_t
        private var ending: Spawn.Exit?

        init(shell: String, in folder: String) throws {
            child = try Spawn.start(
                "/bin/sh", ["-c", shell], output: "\(folder)/output", errors: "\(folder)/errors")
        }

        /// How it ended, or nil while it runs.
        func exit() -> Spawn.Exit? {
            if ending == nil { ending = Spawn.poll(child) }
            return ending
        }

        func stop() {
            for signal in [SIGTERM, SIGKILL] {
                guard exit() == nil else { return }
                Spawn.signal(child, signal)
                for _ in 1...1000 where exit() == nil { System.nap(.milliseconds(5)) }
            }
        }
    }

    private static func address(for title: String) -> String {
        let places = ["gunicorn", "uvicorn", "Node", "Puma", "nginx", "Django", "WordPress"]
        return "127.\(getpid() % 200 + 20).\(getpid() / 200 % 250).\((places.firstIndex(of: title) ?? 0) + 1)"
    }

    // MARK: - The text

    /// A section of docs/operating.md with its blocks of code.
    private struct Recipe {
        let title: String
        private let blocks: [String: String]

        init(_ title: String) throws {
            self.title = title
            let text = System.contents(of: "\(Repository.folder)/docs/operating.md")
            let recipes = text.split(separator: "\n## Recipes\n").last?.split(separator: "\n## ").first ?? ""
            let section = recipes.split(separator: "\n### ").first { $0.hasPrefix("\(title)\n") }
            var blocks: [String: String] = [:]
            for block in try #require(section, "no recipe for \(title)").matches(of: #/\n```(\w+)\n([^`]*)```/#) {
                blocks[String(block.1)] = String(block.2)
            }
            self.blocks = blocks
        }

        func block(_ language: String) -> String { blocks[language] ?? "" }
    }

    // MARK: - The applications

    private static let wsgi = """
        import itertools, os, time
        numbers = itertools.count(1)
        def app(environ, start_response):
            fields = [("Content-Type", "text/plain")]
            path, body = environ["PATH_INFO"], "%d %d" % (os.getpid(), next(numbers))
            if path == "/page": fields.append(("Cache-Control", "max-age=60"))
            elif path == "/slow": time.sleep(0.5)
            else:
                environ["wsgi.input"].read()
                fields.append(("Cache-Control", "no-store"))
            start_response("200 OK", fields + [("Content-Length", str(len(body)))])
            return [body.encode()]

        """

    private static let asgi = """
        import asyncio, itertools
        numbers = itertools.count(1)
        async def app(scope, receive, send):
            assert scope["type"] == "http"
            fields, body = [], b"%d" % next(numbers)
            if scope["path"] == "/page": fields.append((b"cache-control", b"max-age=60"))
            elif scope["path"] == "/slow": await asyncio.sleep(0.5)
            else:
                while (await receive()).get("more_body"): pass
                fields.append((b"cache-control", b"no-store"))
            fields.append((b"content-length", b"%d" % len(body)))
            await send({"type": "http.response.start", "status": 200, "headers": fields})
            await send({"type": "http.response.body", "body": body})

        """

    private static let node = """
        let number = 0
        const app = (request, response) => {
            const body = `${++number}`
            request.resume()
            if (request.url == "/page") response.setHeader("Cache-Control", "max-age=60")
            else if (request.url != "/slow") response.setHeader("Cache-Control", "no-store")
            setTimeout(() => response.end(body), request.url == "/slow" ? 500 : 0)
        }

        """

    private static let rack = """
        number = 0
        run lambda { |env|
          path, fields = env["PATH_INFO"], {"Content-Type" => "text/plain"}
          body = (number += 1).to_s
          if path == "/page" then fields["Cache-Control"] = "max-age=60"
          elsif path == "/slow" then sleep 0.5
          else
            env["rack.input"].read
            fields["Cache-Control"] = "no-store"
          end
          [200, fields, [body]]
        }

        """

    private static let djangoSettings = """
        SECRET_KEY = "for tests"
        ALLOWED_HOSTS = ["*"]
        ROOT_URLCONF = "site_for_tests"
        MIDDLEWARE = ["django.middleware.security.SecurityMiddleware", "django.middleware.csrf.CsrfViewMiddleware"]

        """

    private static let django = """
        import itertools, os
        os.environ["DJANGO_SETTINGS_MODULE"] = "settings"
        from django.core.wsgi import get_wsgi_application
        from django.http import HttpResponse
        from django.middleware.csrf import get_token
        from django.urls import path
        from django.views.decorators.cache import cache_control
        numbers = itertools.count(1)
        @cache_control(public=True, max_age=60)
        def page(request): return HttpResponse("%d %d" % (os.getpid(), next(numbers)))
        def form(request): return HttpResponse(get_token(request))
        urlpatterns = [path("page", page), path("form", form)]
        application = get_wsgi_application()

        """

    /// A theme that says no more than who asks and when.
    private static let wordpress = [
        "style.css": "/* Theme Name: Plain */\n",
        "index.php": """
        <?php
        echo is_user_logged_in() ? wp_get_current_user()->user_login : 'a visitor', ' ', hrtime(true);

        """,
        "wp-config.php": """
        <?php
        define('DB_NAME', 'wordpress'); define('DB_USER', 'root'); define('DB_PASSWORD', '');
        define('DB_HOST', 'localhost:@/s'); define('DB_CHARSET', 'utf8mb4'); define('DB_COLLATE', '');
        define('WP_HOME', 'http://' . ($_SERVER['HTTP_HOST'] ?? 'a')); define('WP_SITEURL', WP_HOME);
        define('DISABLE_WP_CRON', true); define('WP_HTTP_BLOCK_EXTERNAL', true); define('WP_DEFAULT_THEME', 'plain');
        $table_prefix = 'wp_';
        if (!defined('ABSPATH')) define('ABSPATH', __DIR__ . '/');
        require_once ABSPATH . 'wp-settings.php';

        """,
        "make.php": """
        <?php
        define('WP_INSTALLING', true);
        (new mysqli(null, 'root', '', '', 0, '@/s'))->query('CREATE DATABASE wordpress');
        require __DIR__ . '/wp-load.php';
        require ABSPATH . 'wp-admin/includes/upgrade.php';
        wp_install('Site', 'admin', 'a@example.com', true, '', 'secret');

        """,
    ]
}
