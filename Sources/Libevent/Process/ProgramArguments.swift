import CArguments

/// The command line as `main` gets it. Swift's `CommandLine.arguments` is empty if a library that was loaded before the
/// program has set an environment variable, or if there is no `/proc` (`arguments.c`).
public enum ProgramArguments {
    /// The arguments, the program's name first; `nil` if they are not known. Bytes that are not UTF-8 become U+FFFD.
    public static var all: [String]? {
        let count = Int(coalesced_argument_count())
        guard count > 0, let words = unsafe coalesced_arguments() else { return nil }
        // There are `count` words, and each is a C string that stays valid.
        return unsafe UnsafeBufferPointer(start: words, count: count).map {
            unsafe $0.map { unsafe String(cString: $0) } ?? ""
        }
    }
}
