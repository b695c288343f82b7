import Admin
import Configuration
import Libevent
import Proxy
import Routing
import Storage

/// The log's lines about a start, and the numbers in them.
enum StartText {
    static func counted(_ number: Int, _ what: String) -> String {
        "\(number) \(what)\(number == 1 ? "" : "s")"
    }

    /// The log's first line: version and configuration, so that the log shows which version started after an upgrade.
    static func introduction(_ settings: Settings, _ file: String?) -> String {
        let workers = settings.proxy.workers > 0 ? settings.proxy.workers : processorCount()
        let parts = [
            counted(settings.upstreams.count, "upstream"), counted(settings.proxy.routes.count, "route"),
            counted(workers, "worker"), ScalarSyntax.memory.text(of: settings.storage.memory),
        ]
        return "coalesced \(Version.current), pid \(System.processNumber), \(file ?? "no configuration file"): "
            + parts.joined(separator: ", ")
    }

    /// Further advice if the admin listener cannot listen.
    static func advice(for error: ProxyServer.StartError, _ settings: Settings) -> String {
        guard case .listen(let error) = error, error.address == settings.admin.address else { return "" }
        let origin = error.address == AdminSettings().address ? ", its default" : ""
        return "; this is admin.address\(origin): set another, or off, in the file or with --admin"
    }
}
