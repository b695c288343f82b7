/// The bounds of one value from the engine. The engine is trusted no more than an origin: without bounds, a few of its
/// bytes could ask for any amount of memory.
package struct RESPLimits: Sendable {
    /// The most bytes of all texts of a value together. A read of a body's stream asks for less.
    package var mostBytes = 64 << 20
    /// The most values inside of a value, at any depth; a key of a map counts as one.
    package var mostElements = 1 << 20
    /// The most values that are inside of each other. The deepest answer to a command of ours has five.
    package var mostDepth = 8
    /// The most bytes of a line: of a short text, an error or a number, with its type and its CR LF.
    package var mostLine = 64 << 10

    /// The bounds by default.
    package init() {}
}
