import Glibc

/// The user and group this program runs as, which decide what it is allowed: `uid 998, gid 998`. As numbers, since
/// looking up their names may ask the network.
public func ownUser() -> String { "uid \(geteuid()), gid \(getegid())" }
