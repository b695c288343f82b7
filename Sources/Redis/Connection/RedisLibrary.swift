package import Bytes

/// Functions for the engine to run. The name says which version they are, since programs of several versions may use
/// one engine: a library is never replaced.
package struct RedisLibrary: Sendable {
    /// The name in the code's first line, `#!lua name=NAME`.
    package let name: ByteSlice
    /// The text of the library, in Lua.
    package let code: ByteSlice

    /// - Parameters: both in the form in which the engine gets them.
    package init(name: ByteSlice, code: ByteSlice) {
        self.name = name
        self.code = code
    }
}
