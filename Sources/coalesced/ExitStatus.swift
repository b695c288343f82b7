import ArgumentParser
import Libevent
import Proxy

/// The exit codes for failures (`sysexits.h`). ArgumentParser uses 64 for usage.
enum ExitStatus {
    static let unavailable = ExitCode(69)
    static let inputOutput = ExitCode(74)
    static let noPermission = ExitCode(77)
    static let configuration = ExitCode(78)
}

extension ParsableCommand {
    /// Prints the command's result. The command fails if the result cannot be written.
    func output(_ text: String) throws {
        do throws(System.Failure) {
            try System.writeOutput(text)
        } catch {
            System.writeError("standard output: \(error)\n")
            throw ExitStatus.inputOutput
        }
    }
}

extension ProxyServer.StartError {
    var exitStatus: ExitCode {
        switch self {
        case .listen(let error):
            switch error.reason {
            case .addressInUse, .addressUnavailable, .notASocket, .other: ExitStatus.unavailable
            case .noPermission: ExitStatus.noPermission
            }
        case .system: ExitStatus.unavailable
        case .inherited, .tls: ExitStatus.configuration
        case .accessLog(let error, _):
            error.isForbidden ? ExitStatus.noPermission : ExitStatus.configuration
        }
    }
}
