internal import ArgumentParser
internal import Libevent

/// How the program ends when it cannot do its work (`sysexits.h`). 64, usage, is argument-parser's.
enum ExitStatus {
    static let unavailable = ExitCode(69)
    static let noPermission = ExitCode(77)
    static let configuration = ExitCode(78)
}

extension ListenError {
    var exitStatus: ExitCode {
        switch reason {
        case .addressInUse, .addressUnavailable, .other: ExitStatus.unavailable
        case .noPermission: ExitStatus.noPermission
        }
    }
}
