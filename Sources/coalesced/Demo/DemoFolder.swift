/// The folder of a demo with several machines: the sockets and the configuration of its programs. Only this user may
/// enter it. Removed by `remove`; a demo that is killed leaves it behind.
struct DemoFolder {
    let path: String

    init() throws(System.Failure) { path = try System.makeFolder(named: "coalesced-demo") }

    /// Where the engine listens.
    var engine: String { "\(path)/redis.sock" }
    /// The engine's log.
    var engineLog: String { "\(path)/redis.log" }
    /// The configuration of all machines.
    var configuration: String { "\(path)/coalesced.yaml" }

    /// Where the admin listener of a machine is; machines count from 1.
    func admin(of machine: Int) -> String { "\(path)/admin-\(machine).sock" }

    /// - Parameter originPort: of the origin, on the loopback address.
    func writeConfiguration(originPort: UInt16) throws(System.Failure) {
        let text = """
            log-level: warning
            access-log: {target: "off"}
            upstreams: [{name: demo, servers: "http://127.0.0.1:\(originPort)"}]
            shared: {engine: "unix:\(engine)"}

            """
        try System.write(text, toNewFile: configuration)
    }

    func remove() { System.removeFolder(path) }
}
