import Glibc

/// A network for one program alone, with name servers and a hosts file as a test wants them. Clients reach it by unix
/// sockets. Or only the files.
///
/// By util-linux's `unshare` and iproute2's `ip`; without root it takes a kernel that lets everybody make namespaces.
struct OwnNetwork {
    /// The only address but those of the loopback: this machine has IPv4, and no IPv6.
    static let address = "192.0.2.9/32"
    /// Nobody else is in its network, so nobody there answers.
    static let neighbours = "192.0.2.0/24"
    static let silentNameServer = "192.0.2.53"

    var hosts = ""
    var nameServers = ""
    /// This machine's network, with files of its own.
    var isShared = false

    /// Other names from now on, for who reads them again.
    static func rewrite(hosts: String, in folder: String) throws { try System.write(hosts, to: "\(folder)/hosts") }

    private static let shell = "/bin/sh"
    private static let script = """
        mount --bind "$1/hosts" /etc/hosts && mount --bind "$1/resolv.conf" /etc/resolv.conf \
        && shift && exec "$@"
        """

    /// What runs `words` in it, with its files in `folder`.
    func command(_ words: [String], in folder: String) throws -> [String] {
        try System.write(hosts, to: "\(folder)/hosts")
        try System.write(nameServers, to: "\(folder)/resolv.conf")
        let options = (getuid() == 0 ? [] : ["-r"]) + (isShared ? [] : ["-n"]) + ["-m"]
        let network =
            isShared
            ? ""
            : "ip link set lo up && ip addr add \(Self.address) dev lo && ip route add \(Self.neighbours) dev lo && "
        return ["/usr/bin/unshare"] + options + [Self.shell, "-c", network + Self.script, Self.shell, folder] + words
    }

    /// Whether this machine lets us have one.
    static let isToBeHad: Bool = {
        guard System.isExecutable("/usr/bin/unshare"), let folder = try? System.makeTemporaryFolder() else {
            return false
        }
        defer { System.removeFolder(folder) }
        guard let command = try? OwnNetwork().command(["/bin/true"], in: folder),
            let child = try? Spawn.start(
                command[0], Array(command.dropFirst()), output: "/dev/null", errors: "/dev/null")
        else { return false }
        while true {
            if let exit = Spawn.poll(child) { return exit == .code(0) }
            System.nap(.milliseconds(1))
        }
    }()
}
