/// A file that the configuration names. It is read with the configuration, at the start and at each reload.
public struct NamedFile: Sendable, Hashable {
    /// The path, absolute.
    public var path: String
    /// Empty until it has been read.
    public var content = ByteSlice.empty

    /// The file at `path`, not read yet.
    public init(path: String) { self.path = path }
}
