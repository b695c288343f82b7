/// A conversation with a program that has these routes, in front of a scripted origin; its log is JSON.
/// - Parameters:
///   - routes: the items of the list, as lines of YAML.
///   - more: other keys of the file.
///   - pages: files; in `routes`, `PAGES` stands for their folder.
func scenario(
    routes: String, more: String = "", pages: [String: String] = [:],
    _ conversation: (_ origin: ScriptedOrigin, _ proxy: Program) throws -> Void
) throws {
    let origin = try ScriptedOrigin()
    defer { origin.stop() }
    let folder = try System.makeTemporaryFolder()
    defer { System.removeFolder(folder) }
    for (name, text) in pages { try System.write(text, to: "\(folder)/\(name)") }
    let lines =
        ["workers: 2", "coalescing: {overtake-after: 1m}", more]
        + ["access-log: {target: @/access.log, format: json, flush-wait: 20ms}"]
        + ["upstreams: [{name: origin, servers: [\"\(origin.url)\"]}]", "routes:", routes]
    let file = lines.joined(separator: "\n").replacing("PAGES", with: folder)
    let proxy = try Program.serve(file: file + "\n")
    defer { proxy.stop() }
    try conversation(origin, proxy)
}
