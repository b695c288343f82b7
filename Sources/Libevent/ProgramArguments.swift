import CArguments

/// The command line as `main` gets it. Not Swift's `CommandLine.arguments`, which is empty if a library that was loaded
/// before the program has set a variable, or if there is no `/proc` (`arguments.c`).
public enum ProgramArguments {
    /// The arguments, the program's name first; `nil`: they cannot be told. What is not UTF-8 becomes U+FFFD.
    public static var all: [String]? {
        let count = Int(coalesced_argument_count())
        guard count > 0, let words = unsafe coalesced_arguments() else { return nil }
        // As many as are said to be there, each a C string that stays.
        return unsafe UnsafeBufferPointer(start: words, count: count).map {
            unsafe $0.map { unsafe String(cString: $0) } ?? ""
        }
    }
}
