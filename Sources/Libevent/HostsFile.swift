/// What hosts(5) says of names: an address and its names in each line.
struct HostsFile {
    private var addresses: [String: [SocketAddress]] = [:]

    /// - Parameter text: of the file.
    init(_ text: String) {
        for line in text.split(whereSeparator: \.isNewline) {
            let words = line.prefix { $0 != "#" }.split(whereSeparator: \.isWhitespace)
            guard let first = words.first, let address = SocketAddress(literal: String(first), port: 0) else {
                continue
            }
            for name in words.dropFirst() { addresses[name.lowercased(), default: []].append(address) }
        }
    }

    /// The addresses of `name`, in the order of the file; without ports.
    /// - Parameter name: in lower case.
    func addresses(of name: String) -> [SocketAddress] {
        addresses[name.hasSuffix(".") ? String(name.dropLast()) : name] ?? []
    }
}
