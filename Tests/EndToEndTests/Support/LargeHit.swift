import Testing

/// `/x` is stored, and so large that no socket holds it; what is sent is logged.
func withLargeHit(
    sourceLocation: SourceLocation = #_sourceLocation, _ conversation: (_ proxy: Program, _ size: Int) throws -> Void
) throws {
    try scenario(
        .accessLog, .memory(mebibytes: 128), .maxObjectSize(64 << 20), sourceLocation: sourceLocation
    ) { origin, proxy in
        let size = 32 << 20
        origin.on("/x") { _ in
            [.head(200, "Cache-Control: max-age=60", "Content-Length: \(size)"), .pattern(0..<size)]
        }
        try proxy.get("/x")
        try conversation(proxy, size)
    }
}

/// The same, and `client` has asked for it and reads nothing: it is being sent, and will not be out.
func withHalfSentHit(
    sourceLocation: SourceLocation = #_sourceLocation,
    _ conversation: (_ proxy: Program, _ client: Conversation, _ size: Int) throws -> Void
) throws {
    try withLargeHit(sourceLocation: sourceLocation) { proxy, size in
        let client = try proxy.connect()
        try client.send(proxy.request("GET", "/x"))
        try eventually("it is being sent") {
            try proxy.metric(.hits) == 0 && proxy.metric(.clientSentBytes) > size + 1000
        }
        try conversation(proxy, client, size)
        withExtendedLifetime(client) {}
    }
}
