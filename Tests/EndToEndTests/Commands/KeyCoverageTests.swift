import Testing

/// A key that no test sets may do nothing, and nobody would notice.
@Suite struct KeyCoverageTests {
    /// Keys that change nothing a client, an origin or an operator could see in a moment, and where they are tested
    /// instead. All are also in ConfigurationTests, which see to it that they are read.
    private static let elsewhere = [
        Key(section: "", name: "backlog"): "what the kernel holds: LibeventTests",
        Key(section: "storage", name: "small-queue-share"): "S3FIFOTests",
        Key(section: "upstreams", name: "resolve-ttl"):
            "NameResolutionTests: the names of this machine stay as they are",
        Key(section: "admin", name: "address"): "the flag --admin, in each test",
        Key(section: "access-log", name: "buffer"): "TelemetryTests, of a batch and what it loses",
    ]

    struct Key: Hashable, CustomStringConvertible {
        let section: String
        let name: String
        var description: String { section.isEmpty ? name : "\(section).\(name)" }
    }

    @Test func `every key is set by a test that drives the program, or has a listed reason why not`() {
        let keys = Self.keys(System.contents(of: "\(Repository.folder)/config/coalesced.yaml"))
        #expect(keys.count > 75)
        let sources = Self.sources()
        for key in keys {
            let isSet = Self.isSet(key, in: sources, isUnique: keys.count { $0.name == key.name } == 1)
            #expect(
                isSet != (Self.elsewhere[key] != nil),
                "\(key): \(isSet ? "set by a test, and listed here" : "no test sets it")")
        }
        for key in Self.elsewhere.keys { #expect(keys.contains(key), "\(key) is no key") }
    }

    /// Those of the shipped file, also those of its example of a route.
    private static func keys(_ file: String) -> [Key] {
        var section = ""
        var keys: [Key] = []
        for line in file.split(separator: "\n") {
            // The example's keys have a default, but for one; its other comments are sentences.
            let isExample = line.hasPrefix("#   ") && (line.contains("# default") || line.contains(" upstream: "))
            guard let key = line.firstMatch(of: /^(#? *)(- )?([a-z][a-z-]*):(.*)/),
                isExample || !line.trimmed.hasPrefix("#")
            else { continue }
            if key.1.isEmpty, key.4.isEmpty {
                section = String(key.3)
            } else {
                keys.append(Key(section: isExample ? "routes" : key.1.isEmpty ? "" : section, name: String(key.3)))
            }
        }
        return keys
    }

    private static func sources() -> (tests: String, settings: String) {
        let files = System.sources(in: "\(Repository.folder)/Tests/EndToEndTests")
        func text(_ isChosen: (String) -> Bool) -> String {
            files.filter(isChosen).map { System.contents(of: $0) }.joined()
        }
        return (
            text { !$0.hasSuffix("/Settings.swift") && !$0.hasSuffix("/KeyCoverageTests.swift") },
            text { $0.hasSuffix("/Settings.swift") }
        )
    }

    /// By its `Setting`, by its name and section, or, where no other key is called so, by its flag or its name alone.
    private static func isSet(_ key: Key, in sources: (tests: String, settings: String), isUnique: Bool) -> Bool {
        let section = ["upstreams": "upstream", "routes": "route"][key.section] ?? key.section
        let entry = "(\"\(section)\", \"\(key.name)\","
        if let line = sources.settings.split(separator: "\n").first(where: { $0.contains(entry) }),
            let name = line.firstMatch(of: /case \.(\w+)/)?.1,
            sources.tests.contains(".\(name)(") || sources.tests.contains(".\(name),")
                || sources.tests.contains(".\(name))")
        {
            return true
        }
        if sources.tests.contains("section: \"\(section)\", key: \"\(key.name)\"") { return true }
        // As `SecureSite.run` takes them.
        if section == "tls", sources.tests.contains("\"\(key.name)\": ") { return true }
        guard isUnique else {
            return ["origin", "images"].contains { sources.tests.contains("upstream: \($0), \(key.name):") }
        }
        if sources.tests.contains("\"--\(key.name)\"") { return true }
        // In a file that stands there as text.
        return sources.tests.split(separator: "\n").map { $0.trimmed }.contains { line in
            line.hasPrefix("\(key.name):")
                || (line.hasPrefix("- ") && (line.contains(" \(key.name): ") || line.contains("{\(key.name): ")))
        }
    }
}
