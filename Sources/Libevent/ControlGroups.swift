/// The control groups that this process is in (cgroups(7)), of both versions: what they allow it counts together.
///
/// In a container without a namespace of its own for control groups, the kernel tells the path that its group has
/// outside. Nothing is found there then, except at the root of the tree, where that group is mounted.
public struct ControlGroups {
    /// One group: its own, or one around that.
    public struct Group {
        /// The path that the kernel calls it by, such as `/system.slice/coalesced.service`.
        public let name: String
        fileprivate let folder: String
        fileprivate let read: (String) -> String?

        /// One of its files, such as `memory.max`; `nil` if it has none of that name.
        public func text(of file: String) -> String? { read("\(folder)/\(file)") }
    }

    /// The tree that holds this process's group in each hierarchy: `/proc/self/cgroup`.
    private let hierarchies: [[Substring]]
    private let read: (String) -> String?

    /// Reads the groups of this moment from files.
    public init() { self.init(reading: KernelFile.text) }

    /// - Parameter read: gives the text of the file at a path.
    init(reading read: @escaping (String) -> String?) {
        self.read = read
        // Number, controllers, path.
        hierarchies = (read("/proc/self/cgroup") ?? "").split(separator: "\n").map {
            $0.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
        }
    }

    /// The groups of version 2, one tree for all controllers: its own group, then those around it to the root.
    public var unified: [Group] { groups(under: "/sys/fs/cgroup") { $0[0] == "0" && $0[1].isEmpty } }

    /// The groups in a tree of version 1.
    /// - Parameter controller: for which the tree is, such as `cpu`.
    func groups(of controller: String) -> [Group] {
        groups(under: "/sys/fs/cgroup/\(controller)") { $0[1].split(separator: ",").contains { $0 == controller } }
    }

    private func groups(under root: String, in hierarchy: ([Substring]) -> Bool) -> [Group] {
        guard let own = hierarchies.first(where: { $0.count == 3 && hierarchy($0) }), own[2].hasPrefix("/") else {
            return []
        }
        var groups: [Group] = []
        var path = own[2].dropFirst()
        while true {
            groups.append(Group(name: "/\(path)", folder: path.isEmpty ? root : "\(root)/\(path)", read: read))
            guard !path.isEmpty else { return groups }
            path = path.lastIndex(of: "/").map { path[..<$0] } ?? ""
        }
    }

    /// How many processors' time the process may use, by the least quota that holds for it; `nil`: by none.
    var processorQuota: Double? {
        // `max 100000`, or the microseconds that may be used in each period of so many.
        let quotas = unified.compactMap { group in
            Self.quotient(group.text(of: "cpu.max")?.split(separator: " ") ?? [])
        }
        // Here without a quota it is -1.
        let former = groups(of: "cpu").compactMap { group in
            Self.quotient(["cpu.cfs_quota_us", "cpu.cfs_period_us"].compactMap { group.text(of: $0)?[...] })
        }
        return (quotas + former).min()
    }

    private static func quotient(_ texts: [Substring]) -> Double? {
        let numbers = texts.map { Double($0.prefix { !$0.isNewline }) ?? 0 }
        return numbers.count == 2 && numbers[0] > 0 && numbers[1] > 0 ? numbers[0] / numbers[1] : nil
    }
}
