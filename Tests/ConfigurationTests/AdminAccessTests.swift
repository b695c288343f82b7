import Admin
import Bytes
import Configuration
import Libevent
import Testing

/// What the commands read of a file that may have mistakes.
@Suite struct `The access to the admin listener` {
    private static let token = Files { path in
        path == "/none"
            ? .failure(Files.Failure("No such file or directory", remedy: "create it"))
            : .success(Array((path == "/short" ? "abc" : "0123456789abcdef\n").utf8))
    }

    private func access(
        _ text: String?, _ variables: [String: String] = [:], admin: String? = nil
    ) throws -> Result<AdminAccess, Mistakes> {
        var flags = Overrides()
        flags.admin = try admin.map { .address(try SocketAddress(parsing: $0)) }
        return Configuration.adminAccess(
            text: text, path: "f", variables: Variables(variables), overriddenBy: flags, files: Self.token)
    }

    @Test(arguments: [
        "wrkers: 1\n", "workers: many\n", "upstreams: []\n", "routes: [{upstream: none, ttl: x}]\n", "listen: {}\n",
    ])
    func `is read from a file with mistakes in other keys`(_ mistake: String) throws {
        let text = mistake + "admin: {address: '127.0.0.1:9', token-file: /t, socket-mode: x, hosts: ['a b']}\n"
        let access = try access(text).get()
        #expect(access.address == (try SocketAddress(parsing: "127.0.0.1:9")))
        #expect(access.token?.text == "0123456789abcdef" && access.tokenPath == "/t" && access.tokenMistake == nil)
    }

    @Test(arguments: [
        (
            "admin: [\n",
            "f:2:1: not YAML: did not find expected node content, while parsing a flow node that begins on line 2; look at the colons, quotes and indentation here and just above"
        ),
        ("admin: {adress: '127.0.0.1:9'}\n", "f:1:9: `adress` is not known; did you mean `address`?"),
        ("admin: 5\n", "f:1:8: `admin` must be keys and values (`key: value`), not a single value"),
        (
            "admin: {address: 9}\n",
            "f:1:18: `address: 9`: not an address to listen on: the address before the port is missing; use 0.0.0.0 or [::] for all addresses; give one such as `127.0.0.1:8080`, `[::1]:8080` or `unix:/path`"
        ),
        (" \n", "f:1:1: the file is empty; if you want all defaults, put a comment in it"),
    ])
    func `is not known if its address may be meant otherwise`(_ text: String, _ mistake: String) throws {
        guard case .failure(let mistakes) = try access(text) else {
            Issue.record("read")
            return
        }
        #expect(mistakes.all.map(\.description) == [mistake])
        // A flag gives the address.
        if mistake.hasPrefix("f:1:18") {
            let address = try access(text, admin: "127.0.0.1:7").get().address
            #expect(address == (try SocketAddress(parsing: "127.0.0.1:7")))
        }
    }

    @Test(arguments: [
        (
            "admin: {token-file: /none}\n",
            "f:1:21: `token-file: /none` cannot be read: No such file or directory; create it"
        ),
        (
            "admin: {token-file: /short}\n",
            "f:1:21: `token-file: /short`: the token in it has 3 characters; give it 16 or more, as `openssl rand -hex 32` does"
        ),
        (
            "admin: {token-file: t}\n",
            "f:1:21: `token-file: t`: not understood; give a path such as `/etc/coalesced/token`, or `none`"
        ),
        (
            "admin: {address: '127.0.0.1:8081', token-fil: /t}\n",
            "f:1:36: `token-fil` is not known; did you mean `token-file`?"
        ),
    ])
    func `says why there is no token`(_ text: String, _ mistake: String) throws {
        let access = try access(text).get()
        #expect(access.address == (try SocketAddress(parsing: "127.0.0.1:8081")))
        #expect(access.token == nil && access.tokenMistake?.description == mistake)
    }

    @Test func `obeys variables, and has defaults`() throws {
        let defaults = try access("workers: 1\n").get()
        #expect(defaults.address == (try SocketAddress(parsing: "127.0.0.1:8081")) && defaults.token == nil)
        #expect(try access(nil).get().address == nil)
        let variables = ["COALESCED_ADMIN_ADDRESS": "127.0.0.1:6", "COALESCED_ADMIN_TOKEN_FILE": "/none"]
        for text in [nil, "admin: {address: 9, token-file: /t}\n"] {
            let access = try access(text, variables).get()
            #expect(access.address == (try SocketAddress(parsing: "127.0.0.1:6")) && access.token == nil)
            #expect(
                access.tokenMistake?.description
                    == "COALESCED_ADMIN_TOKEN_FILE: `token-file: /none` cannot be read: No such file or directory; create it"
            )
        }
    }
}
