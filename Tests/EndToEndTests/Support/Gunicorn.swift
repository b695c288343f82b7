import Glibc

/// A gunicorn on this machine (`make test` installs it), with an application of a few lines.
final class Gunicorn: Sendable {
    let url: String
    private let folder: String
    private let child: pid_t

    struct Missing: Error, CustomStringConvertible {
        let description = "gunicorn is not installed: apt-get install gunicorn, or make origins"
    }

    struct Silent: Error, CustomStringConvertible {
        let said: String
        var description: String { "gunicorn does not listen:\n\(said)" }
    }

    /// - Parameters:
    ///   - application: the Python module, whose `app` it serves.
    ///   - arguments: beside that and where it listens.
    init(_ application: String, _ arguments: [String]) throws {
        let folders = (System.environment("PATH") ?? "").split(separator: ":").map(String.init) + ["/usr/bin"]
        guard let path = folders.map({ "\($0)/gunicorn" }).first(where: { System.isExecutable($0) }) else {
            throw Missing()
        }
        folder = try System.makeTemporaryFolder()
        try System.write(application, to: "\(folder)/application.py")
        let log = "\(folder)/stderr"
        child = try Spawn.start(
            path, arguments + ["--chdir", folder, "--bind", "127.0.0.1:0", "application:app"],
            output: "\(folder)/stdout", errors: log)
        let end = Instant.now + .seconds(20)
        while true {
            // Listening at: http://127.0.0.1:36015 (4711)
            let said = System.contents(of: log)
            if let start = said.firstRange(of: "Listening at: "), said.contains("Booting worker"),
                let end = said[start.upperBound...].firstIndex(of: " ")
            {
                url = String(said[start.upperBound..<end])
                return
            }
            guard .now < end else {
                Self.stop(child, folder)
                throw Silent(said: said)
            }
            System.nap(.milliseconds(10))
        }
    }

    func stop() { Self.stop(child, folder) }

    private static func stop(_ child: pid_t, _ folder: String) {
        Spawn.signal(child, SIGTERM)
        let end = Instant.now + .seconds(5)
        while Spawn.poll(child) == nil {
            if .now > end { Spawn.signal(child, SIGKILL) }
            System.nap(.milliseconds(2))
        }
        System.removeFolder(folder)
    }
}
