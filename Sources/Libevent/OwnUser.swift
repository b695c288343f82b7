import Glibc

/// As whom this program runs, by which it is or is not allowed something: `uid 998, gid 998`. Numbers, since a look-up
/// of their names may ask the network.
public func ownUser() -> String { "uid \(geteuid()), gid \(getegid())" }
