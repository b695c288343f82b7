import Glibc

/// The effective user and group of this program, which decide about its permissions: `uid 998, gid 998`. Numbers, since
/// looking up their names may need the network.
public func ownUser() -> String { "uid \(geteuid()), gid \(getegid())" }
