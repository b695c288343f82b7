import Bytes
import HTTPSemantics
import Routing
import Testing

@testable import Configuration

/// Redirects, responses, error pages and schemes of routes.
@Suite struct `A route's own answer` {
    private func load(_ text: String, _ files: Files? = nil) throws -> Settings {
        try Configuration.load(text: text, path: "f", files: files).get()
    }

    private func warnings(_ text: String) throws -> [String] { try load(text).warnings.map(\.warning) }

    @Test func `a redirect and a response are read with their defaults`() throws {
        let routes = try load(
            """
            hosts: a.example
            routes:
              - {path: /a, redirect: {to: 'http://${host}/x${target}', status: 301}}
              - {path: /b, redirect: {to: /c}}
              - {path: /d, respond: {status: 404}}
              - {path: /e, respond: {status: 200, body: 'a: b', type: text/css}}
            """
        ).proxy.routes
        #expect(routes.map(\.upstream) == ["", "", "", ""])
        #expect(routes[0].redirect?.target?.text == "http://${host}/x${target}")
        #expect(routes.compactMap { $0.redirect?.status.code } == [301, 308])
        #expect(routes[1].redirect?.target?.isConstant == true)
        #expect(routes[2].respond?.body == nil && routes[2].respond?.type == nil && routes[2].respond?.file == nil)
        #expect(routes[3].respond?.body == "a: b" && routes[3].respond?.type == "text/css")
    }

    @Test func `the files of responses and error pages are read, each once`() throws {
        let read = Guarded<[String]>([])
        let files = Files { path in
            read.withLock { $0.append(path) }
            return .success(Array("page of \(path)".utf8))
        }
        let routes = try load(
            """
            routes:
              - {path: /a, respond: {status: 200, file: /p/a}}
              - {path: /b, upstream: origin, error-pages: {502: /p/b, 503: /p/a}}
              - {upstream: origin, error-pages: {404: /p/b}}
            """, files
        ).proxy.routes
        #expect(routes[0].respond?.file.map { String($0.content) } == "page of /p/a")
        let pages = routes.flatMap(\.errorPages)
        #expect(pages.map(\.status.code) == [502, 503, 404])
        #expect(pages.map { String($0.file.content) } == ["page of /p/b", "page of /p/a", "page of /p/b"])
        #expect(read.withLock { $0 } == ["/p/a", "/p/b"])
    }

    @Test func `what is written is read as the same`() throws {
        let routes = try load(
            #"""
            hosts: a.example
            routes:
              - {path: /a, scheme: http, redirect: {to: 'https://${host}${target}', status: 307}}
              - {path: /b, respond: {status: 503, body: "a \"b\"\n\tc: #d \\ \x01", type: text/html; charset=utf-8}}
              - {path: /c, respond: {status: 200, file: /p/a b.html}}
              - {path: /d, upstream: origin, error-pages: {502: /p/b}}
            """#)
        let written = DefaultFile.lines(of: KeyTable.all, in: routes).joined(separator: "\n")
        #expect(try load(written + "\n").proxy.routes == routes.proxy.routes)
    }

    @Test(arguments: [
        Faulty(
            "routes:\n  - {path: /a}\n", "f:2:5: a route needs `upstream`, `redirect` or `respond`; add one of them"),
        Faulty(
            "routes:\n  - {path: /a, redirect: none}\n",
            "f:2:5: a route needs `upstream`, `redirect` or `respond`; add one of them"),
        Faulty(
            "routes:\n  - upstream: origin\n    respond: {status: 200}\n",
            "f:3:14: a route has only one of `upstream`, `redirect` and `respond`; remove the others"),
        Faulty(
            "routes:\n  - respond: {status: 200}\n    redirect: {to: /a}\n",
            "f:3:15: a route has only one of `upstream`, `redirect` and `respond`; remove the others"),
        Faulty(
            "routes: [{redirect: https://a.example}]\n",
            "f:1:21: `redirect` is `{to: …, status: …}` or `none`, not a single value"),
        Faulty(
            "routes: [{redirect: {to: ''}}]\n",
            "f:1:26: `to: `: empty; give a URL such as `https://www.example.com${target}`, or a path such as `/new/`"),
        Faulty("routes: [{redirect: {status: 301}}]\n", "f:1:21: `redirect` needs `to`; add it"),
        Faulty(
            "routes: [{redirect: {to: /a, code: 301}}]\n",
            "f:1:30: `code` is unknown; remove it. Keys allowed here: `to`, `status`"),
        Faulty(
            "routes: [{redirect: {to: /a, status: 200}}]\n",
            "f:1:38: `status: 200`: not understood; give one of these words (301, 302, 303, 307, 308)"),
        Faulty("routes: [{redirect: {to: a.example}}]\n", target("f:1:26: `to: a.example`")),
        Faulty("routes: [{redirect: {to: //a.example/}}]\n", target("f:1:26: `to: //a.example/`")),
        Faulty("routes: [{redirect: {to: 'ftp://a.example'}}]\n", target("f:1:26: `to: ftp://a.example`")),
        Faulty("routes: [{redirect: {to: '${target}'}}]\n", target("f:1:26: `to: ${target}`")),
        Faulty(
            "routes: [{redirect: {to: '/${path}'}}]\n",
            "f:1:26: `to: /${path}`: `/` and a variable may begin with `//`, and then name a host; "
                + "write the beginning of the path, as in `/new${target}`"),
        Faulty(
            "routes: [{redirect: {to: 'https://${target}'}}]\n",
            "f:1:26: `to: https://${target}`: the host is missing; write one such as `www.example.com`, or `${host}`"),
        Faulty(
            "routes: [{redirect: {to: 'https:///a'}}]\n",
            "f:1:26: `to: https:///a`: the host is missing; write one such as `www.example.com`, or `${host}`"),
        Faulty(
            "routes: [{redirect: {to: 'https://a.example${query}'}}]\n",
            "f:1:26: `to: https://a.example${query}`: `${query}` would be a part of the host; put a `/` before it"),
        Faulty(
            "routes: [{redirect: {to: 'https://a.example/${hots}'}}]\n",
            "f:1:26: `to: https://a.example/${hots}`: `${hots}` is no variable; did you mean `${host}`?"),
        Faulty(
            "routes: [{redirect: {to: 'https://a.example/${status}'}}]\n",
            "f:1:26: `to: https://a.example/${status}`: `${status}` is known only once there is a response; "
                + "use it in `response-headers`"),
        Faulty(
            "routes: [{redirect: {to: 'https://a.example/${host'}}]\n",
            "f:1:26: `to: https://a.example/${host`: `${` begins a variable, whose name ends with `}`; add it"),
        Faulty(
            "routes: [{redirect: {to: 'https://a.example/é'}}]\n",
            "f:1:26: `to: https://a.example/é`: a field's value has only ASCII characters; percent-encode the others"),
    ])
    func `a mistake in a redirect is reported with its remedy`(faulty: Faulty) {
        #expect(faulty.found == faulty.mistakes)
    }

    @Test(arguments: [
        Faulty(
            "routes: [{respond: 404}]\n",
            "f:1:20: `respond` is `{status: …, body: …, file: …, type: …}` or `none`, not a single value"),
        Faulty("routes: [{respond: {body: a}}]\n", "f:1:20: `respond` needs `status`; add it"),
        Faulty(
            "routes: [{respond: {status: 600}}]\n",
            "f:1:29: `status: 600`: out of range; give a status (200 to 599)"),
        Faulty(
            "routes: [{respond: {status: ok}}]\n",
            "f:1:29: `status: ok`: not understood; give a status (200 to 599)"),
        Faulty(
            "routes: [{respond: {status: 302}}]\n",
            "f:1:29: `status: 302`: use `redirect` for a response that leads elsewhere"),
        Faulty(
            "routes: [{respond: {status: 206}}]\n",
            "f:1:29: `status: 206`: the proxy answers ranges only of stored responses; use 200"),
        Faulty(
            "routes: [{respond: {status: 304}}]\n",
            "f:1:29: `status: 304`: it confirms what a client has stored, and this response has no validator; use 200"),
        Faulty(
            "routes: [{respond: {status: 200, body: a, file: /b}}]\n",
            "f:1:49: `respond` has `body` and `file`; remove one of them"),
        Faulty(
            "routes: [{respond: {status: 204, body: a}}]\n",
            "f:1:40: a response with status 204 has no content; remove this, or choose another `status`"),
        Faulty(
            "routes: [{respond: {status: 200, body: [a]}}]\n", "f:1:40: `body` is a text, not a list"),
        Faulty(
            "routes: [{respond: {status: 200, file: a.html}}]\n",
            "f:1:40: `file: a.html`: not understood; give a path such as `/etc/coalesced/502.html`"),
        Faulty(
            "routes: [{respond: {status: 200, type: html}}]\n",
            "f:1:40: `type: html`: not understood; "
                + "give a media type such as `application/json` or `text/html; charset=utf-8`"),
        Faulty(
            "routes: [{respond: {status: 200, type: \"text/html\\r\\nX: y\"}}]\n",
            "f:1:40: `type: text/html\\r\\nX: y`: not understood; "
                + "give a media type such as `application/json` or `text/html; charset=utf-8`"),
    ])
    func `a mistake in a response is reported with its remedy`(faulty: Faulty) {
        #expect(faulty.found == faulty.mistakes)
    }

    @Test(arguments: [
        Faulty(
            "routes: [{upstream: origin, error-pages: /a}]\n",
            "f:1:42: `error-pages` is a file for each status, `{502: /etc/coalesced/502.html}`, not a single value"),
        Faulty(
            "routes: [{upstream: origin, error-pages: {200: /a}}]\n",
            "f:1:43: `error-pages` has `200`: out of range; give a status (400 to 599)"),
        Faulty(
            "routes: [{upstream: origin, error-pages: {5xx: /a}}]\n",
            "f:1:43: `error-pages` has `5xx`: not understood; give a status (400 to 599)"),
        Faulty(
            "routes: [{upstream: origin, error-pages: {0502: /a}}]\n",
            "f:1:43: `error-pages` has `0502`: out of range; give a status (400 to 599)"),
        Faulty(
            "routes: [{upstream: origin, error-pages: {502: a}}]\n",
            "f:1:48: `502: a`: not understood; give a path such as `/etc/coalesced/502.html`"),
        Faulty(
            "routes: [{upstream: origin, error-pages: {502: }}]\n",
            "f:1:48: `502` is a path such as `/etc/coalesced/502.html`, not nothing"),
        Faulty(
            "routes: [{upstream: origin, error-pages: {502: /a, 502: /b}}]\n",
            "f:1:52: `502` is already given on line 1; remove one of them"),
        Faulty(
            "routes: [{upstream: origin, rewrite-location: maybe}]\n",
            "f:1:47: `rewrite-location: maybe`: not understood; give `on` or `off`"),
        Faulty(
            "routes: [{upstream: origin, scheme: htps}]\n",
            "f:1:37: `scheme: htps`: not understood; did you mean `https`?"),
        Faulty(
            "routes: [{upstream: origin, scheme: tls}]\n",
            "f:1:37: `scheme: tls`: not understood; give one of these words, or `any` (http, https, or any)"),
    ])
    func `a mistake in an error page, a scheme or rewrite-location is reported with its remedy`(faulty: Faulty) {
        #expect(faulty.found == faulty.mistakes)
    }

    @Test(arguments: [
        ("set-cookie", "each of its values is for one client; name a field such as `surrogate-key`"),
        ("Cache-Groups", "it names tags on every route; remove it here"),
        (
            "connection",
            "it is for one connection only, so no stored response has it; name a field such as `surrogate-key`"
        ),
        (
            "proxy-x",
            "it is for one connection only, so no stored response has it; name a field such as `surrogate-key`"
        ),
        ("date", "its values are no tags; name a field such as `surrogate-key`"),
        ("cookie", "its values are no tags; name a field such as `surrogate-key`"),
        ("x-*", "`*` is not a wildcard here; list each name"),
    ])
    func `a field that cannot name tags is refused`(_ name: String, _ reason: String) {
        #expect(
            Faulty("routes: [{upstream: origin, tags: [x-a, \(name)]}]\n").found == [
                "f:1:41: `tags: \(name)`: \(reason)"
            ])
        #expect(Faulty("routes: [{upstream: origin, tags: [cache-tag, content-language, X-Own]}]\n").found == [])
    }

    @Test func `a file that cannot be read is reported where it is named`() {
        let files = Files { _ in .failure(Files.Failure("No such file or directory", remedy: "correct the path")) }
        let text = """
            routes:
              - {path: /a, respond: {status: 200, file: /p/a}}
              - {upstream: origin, error-pages: {502: /p/b}}
            """
        guard case .failure(let mistakes) = Configuration.load(text: text, path: "f", files: files) else {
            Issue.record("there are no files")
            return
        }
        let remedy = "cannot be read: No such file or directory; correct the path"
        #expect(
            mistakes.all.map(\.description) == ["f:2:45: `file: /p/a` \(remedy)", "f:3:43: `502: /p/b` \(remedy)"])
    }

    @Test func `a redirect to any host causes a warning, and so does one to itself`() throws {
        let any =
            "f:1:38: warning: `${host}` may be any host that a client names; set `hosts`, or the route's `host`, to bound it"
        let redirect = "redirect: {to: 'https://${host}/x${path}'}}]\n"
        #expect(try warnings("routes: [{path: /old, " + redirect) == [any])
        #expect(try warnings("hosts: a.example\nroutes: [{path: /old, " + redirect) == [])
        #expect(try warnings("routes: [{host: '*.a.example', path: /old, " + redirect) == [])
        #expect(try warnings("routes: [{redirect: {to: 'https://a.example${target}'}}]\n") == [])
        let own = "{redirect: {to: 'https://${host}${target}'}}]\nhosts: a.example\n"
        #expect(
            try warnings("routes: [" + own) == [
                "f:1:26: warning: requests for https are redirected to themselves, without end; add `scheme: http` to the route"
            ])
        #expect(try warnings("routes: [{scheme: http, " + own.dropFirst()) == [])
    }

    @Test func `a route for https causes a warning if nobody may say that a request is for https`() throws {
        let route = "routes: [{scheme: https, upstream: origin}]\n"
        #expect(
            try warnings(route) == [
                "f:1:19: warning: no request is for https: no listener speaks TLS, and `clients.trusted-proxies` is empty; "
                    + "add `https://0.0.0.0:443` to `listen`, or name the server there that terminates TLS"
            ])
        #expect(try warnings("clients: {trusted-proxies: 127.0.0.1}\n" + route) == [])
    }

    @Test func `routes of two schemes do not cover each other, and one of both covers each`() {
        let routes = "routes:\n  - {scheme: http, upstream: origin}\n"
        #expect(Faulty(routes + "  - {upstream: origin}\n").found == [])
        #expect(Faulty(routes + "  - {scheme: https, upstream: origin}\n").found == [])
        #expect(
            Faulty(routes + "  - {scheme: http, path: /a, upstream: origin}\n").found == [
                "f:3:5: the route on line 2 already matches all requests of this one; move this one before it"
            ])
        #expect(
            Faulty("routes:\n  - {upstream: origin}\n  - {scheme: http, upstream: origin}\n").found == [
                "f:3:5: the route on line 2 already matches all requests of this one; move this one before it"
            ])
    }
}

private func target(_ place: String) -> String {
    "\(place): it must begin with `https://`, `http://`, `${scheme}://` or, for the same host, with `/`"
}
