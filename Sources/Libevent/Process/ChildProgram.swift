import CLibevent
import Glibc

/// A program that this one has started and that ends with it: the kernel kills the program when the thread that started
/// it ends, however that happens. So start it on the main thread.
///
/// A value: whoever holds it may signal the program and ask whether it has ended, on one thread.
public struct ChildProgram {
    /// Its process.
    public let process: Int32
    /// `nil` while it runs, as far as `check` has found out.
    public private(set) var ending: ProgramEnding?

    /// Starts the program at `path`, in a process group of its own: a terminal's Control-C is not for it.
    /// - Parameters:
    ///   - arguments: without the program's name.
    ///   - prefix: it gets the variables of this program whose names do not begin so.
    /// - Throws: if no process can be made. A program that cannot be executed ends with exit code 127.
    public init(at path: String, _ arguments: [String], withoutVariables prefix: String) throws(SystemError) {
        let words = unsafe ([path] + arguments).map { unsafe strdup($0) } + [nil]
        defer { for index in unsafe words.indices { unsafe free(words[index]) } }
        var variables: [UnsafeMutablePointer<CChar>?] = unsafe []
        var place: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?> = unsafe environ
        while let variable = unsafe place.pointee {
            // The strings stay where they are: this process sets no variable.
            if unsafe strncmp(variable, prefix, prefix.utf8.count) != 0 { unsafe variables.append(variable) }
            unsafe place += 1
        }
        unsafe variables.append(nil)
        process = unsafe coalesced_start_child(path, words, variables)
        guard process > 0 else { throw .last(.spawn) }
    }

    /// Sends a signal, unless the program is known to have ended.
    public func signal(_ number: Int32) { if ending == nil { _ = kill(process, number) } }

    /// Finds out whether the program has ended. Does not wait.
    public mutating func check() {
        guard ending == nil else { return }
        var status: Int32 = 0
        let reaped = unsafe waitpid(process, &status, WNOHANG)
        if reaped != 0 { ending = reaped < 0 ? .unknown : ProgramEnding(waitStatus: status) }
    }
}

/// How a program ended.
public enum ProgramEnding: Sendable, CustomStringConvertible {
    case exited(Int32)
    case killed(Int32)
    /// Its parent ignores `SIGCHLD`, so the kernel kept no exit status.
    case unknown

    /// - Parameter status: of wait(2), for a process that has ended.
    init(waitStatus status: Int32) {
        let signal = status & 0x7F
        self = signal == 0 ? .exited(status >> 8 & 0xFF) : .killed(signal)
    }

    public var description: String {
        switch self {
        case .exited(let code): "it ended with exit code \(code)"
        case .killed(let signal): "it was killed by signal \(signal)"
        case .unknown: "it has ended"
        }
    }
}
