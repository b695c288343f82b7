import Testing

/// A conversation between clients, the program and a scripted origin. Whatever happens, both are gone afterwards; when
/// something goes wrong, what the program said on standard error is part of the report.
func scenario(
    _ settings: Setting..., arguments: [String] = [], sourceLocation: SourceLocation = #_sourceLocation,
    _ conversation: (_ origin: ScriptedOrigin, _ proxy: Program) throws -> Void
) throws {
    try scenario(settings: settings, arguments: arguments, sourceLocation: sourceLocation, conversation)
}

/// The same with a list of settings.
func scenario(
    settings: [Setting], arguments: [String] = [], sourceLocation: SourceLocation = #_sourceLocation,
    _ conversation: (_ origin: ScriptedOrigin, _ proxy: Program) throws -> Void
) throws {
    let origin = try ScriptedOrigin()
    defer { origin.stop() }
    let proxy = try Program.serve(upstream: origin.url, settings, arguments: arguments)
    defer { proxy.stop() }
    do {
        try conversation(origin, proxy)
    } catch {
        let said = proxy.diagnostics
        if !said.isEmpty { Issue.record("the program said:\n\(said.suffix(4000))", sourceLocation: sourceLocation) }
        throw error
    }
    if let exit = proxy.exit(), !proxy.mayHaveEnded(with: exit) {
        Issue.record(
            "the program ended with \(exit):\n\(proxy.diagnostics.suffix(4000))", sourceLocation: sourceLocation)
    }
}

/// A figure for whoever reads the run.
func note(_ what: String, _ value: some CustomStringConvertible) { print("measured: \(what): \(value)") }
