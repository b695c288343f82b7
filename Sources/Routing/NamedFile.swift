package import Bytes

/// A file that the configuration names. It is read with the configuration, at the start and at each reload.
package struct NamedFile: Sendable, Hashable {
    /// The path, absolute.
    package var path: String
    /// Empty until it has been read.
    package var content = ByteSlice.empty

    /// The file at `path`, not read yet.
    package init(path: String) { self.path = path }
}
