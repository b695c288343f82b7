import Routing
import Upstream

@testable import Configuration

/// The manual page of the configuration file, coalesced.yaml(5), made from the table of keys.
enum ManualFile {
    static var made: String {
        let top = KeyTable.all.filter { $0.children.isEmpty && !lists.contains($0.name) }
        var lines = head + [".Ss The top level"]
        lines += list(top) { item($0, in: Settings()) }
        for key in KeyTable.all where !top.contains(where: { $0.name == key.name }) {
            lines += [".Ss \(key.name)"] + paragraph(key.doc)
            switch key.name {
            case "upstreams": lines += [".Pp", "Keys of each:"] + list(UpstreamKeys.all) { item($0, in: .local) }
            case "routes": lines += [".Pp", "Keys of each:"] + list(RouteKeys.all, routeItem)
            default: lines += list(key.children) { item($0, in: Settings()) }
            }
        }
        return (lines + tail).joined(separator: "\n") + "\n"
    }

    /// The keys whose values are lists of groups.
    private static let lists = KeyTable.lists.map(\.name)

    private static func list<Root>(_ keys: [Key<Root>], _ item: (Key<Root>) -> [String]) -> [String] {
        [".Bl -tag -width indent"] + keys.flatMap(item) + [".El"]
    }

    /// A key with its default, its meaning and its range.
    private static func item<Root>(_ key: Key<Root>, in root: Root) -> [String] {
        let value = key.write(root).joined(separator: " ")
        let word = key.isRequired ? "(required)" : value
        return [".It \\fB\(roff(key.name)):\\fP \(roff(word))"] + paragraph(key.doc, range: key.range)
    }

    /// A key of a route, whose default is another key, or the example says it.
    private static func routeItem(_ key: Key<RouteSettings>) -> [String] {
        guard key.children.isEmpty else {
            return [".It \\fB\(roff(key.name)):\\fP"] + paragraph(key.doc) + list(key.children, routeItem)
        }
        let line = RouteKeys.example.first { $0.contains(" \(key.name): ") && $0.contains("# default: ") }
        let told = line?.split(separator: "# default: ").last?.prefix { $0 != ";" }
        let word = key.isRequired ? "(required)" : String(told ?? "")
        return [".It \\fB\(roff(key.name)):\\fP \(roff(word))"] + paragraph(key.doc, range: key.range)
    }

    private static func paragraph(_ text: String, range: String? = nil) -> [String] {
        var lines: [String] = []
        var line = ""
        var words = roff(text).split(separator: " ").map(String.init)
        if let range { words.append("(\(roff(range)))") }
        for word in words {
            if !line.isEmpty, line.count + 1 + word.count > 78 {
                lines.append(line)
                line = ""
            }
            line += line.isEmpty ? word : " " + word
        }
        return (lines + [line]).map { $0.hasPrefix(".") ? "\\&" + $0 : $0 }
    }

    /// `text` as groff prints it unchanged; what stands between backticks is bold.
    private static func roff(_ text: String) -> String {
        var isCode = false
        return text.reduce(into: "") { made, character in
            switch character {
            case "`":
                isCode.toggle()
                made += isCode ? "\\fB" : "\\fP"
            case "\\": made += "\\e"
            case "-": made += "\\-"
            case "'": made += "\\(aq"
            case "\"": made += "\\(dq"
            case "^": made += "\\(ha"
            case "~": made += "\\(ti"
            default: made.append(character)
            }
        }
    }

    private static let head =
        [
            ".\\\" Made from the table of keys: Tests/ConfigurationTests/ManualFile.swift.",
            ".Dd November 26, 2026",
            ".Dt COALESCED.YAML 5",
            ".Os Linux",
            ".Sh NAME",
            ".Nm coalesced.yaml",
            ".Nd configuration of coalesced",
            ".Sh DESCRIPTION",
        ]
        + paragraph(
            """
            The configuration of coalesced(8): a YAML file of at most 1 MiB, in UTF-8. It needs only what differs from \
            the defaults. `coalesced check` names the line and column of every mistake, and warns of values that may not \
            be meant. `systemctl reload coalesced`, or `SIGHUP`, makes a running proxy read the file again; if it has a \
            mistake, the settings in use stay. Options of `coalesced serve` override the file.
            """)
        + [".Pp"]
        + paragraph(
            """
            Durations are written 500ms, 30s, 5m, 1h, 1d; sizes 512B, 64KiB, 256MiB, 1GB. A list with one element needs \
            no brackets. A value that begins with `*`, `&`, `!`, `%` or `@` needs quotes.
            """)
        + [".Sh KEYS"]
        + paragraph("Each key is shown with its default. Its values, or their range, stand in parentheses.")

    private static let tail = [
        ".Sh FILES",
        ".Bl -tag -width indent",
        ".It Pa /etc/coalesced/coalesced.yaml",
        "The file that is read unless",
        ".Fl -config",
        "names another.",
        "The one installed has an empty list of upstreams, with which the program does",
        "not start.",
        ".It Pa /usr/share/doc/coalesced/examples/coalesced.yaml",
        "Every key with its default.",
        ".El",
        ".Sh EXAMPLES",
        "One site:",
        ".Bd -literal -offset indent",
        "listen: [0.0.0.0:80]",
        "upstreams: [{name: app, servers: [http://127.0.0.1:9000]}]",
        ".Ed",
        ".Pp",
        "Images from a server of their own, whatever campaign brought the client:",
        ".Bd -literal -offset indent",
        "listen: [0.0.0.0:80]",
        "storage: {memory: 2GiB}",
        "upstreams:",
        "  \\- name: shop",
        "    servers: [http://10.0.0.1:8000, http://10.0.0.2:8000]",
        "  \\- name: images",
        "    servers: http://10.0.0.9",
        "routes:",
        "  \\- path: /img/",
        "    upstream: images",
        "    key: {query: {drop: [gclid, utm_*]}}",
        "  \\- upstream: shop",
        ".Ed",
        ".Sh SEE ALSO",
        ".Xr coalesced 8",
    ]
}
