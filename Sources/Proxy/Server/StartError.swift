package import Libevent
package import TLS

extension ProxyServer {
    /// The reason why the proxy does not start.
    package enum StartError: Error, CustomStringConvertible {
        case listen(ListenError)
        case system(SystemError)
        case accessLog(SystemError, path: String)
        case inherited(InheritedSockets.Failure)
        case tls(TLSSettingsError)

        package var description: String {
            switch self {
            case .listen(let error): "\(error)"
            case .system(let error):
                error.call == .pthreadCreate
                    ? "a thread cannot be started: \(error.message); lower workers, or raise the limit of threads or of memory (ulimit -u and -v, or TasksMax under systemd)"
                    : "\(error)"
            case .tls(let error): "tls: \(error)"
            case .inherited(let failure): "\(failure)"
            case .accessLog(let error, let path):
                "the access log \(path) cannot be opened: \(error.message)\(Self.advice(for: error))"
            }
        }

        /// The file itself need not exist, only its folder.
        private static func advice(for error: SystemError) -> String {
            if error.isMissing { return "; make the folder it is to stand in" }
            return error.isForbidden ? "; this program runs as \(ownUser())" : ""
        }
    }
}
