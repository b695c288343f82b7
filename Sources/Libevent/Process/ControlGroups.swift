/// The control groups of this process (cgroups(7)), of both versions. A group's limit holds for all of its processes
/// together.
///
/// In a container without a control group namespace of its own, the kernel reports the group's path as seen outside the
/// container. No files are found at that path, except at the root of the tree, where the container's group is mounted.
public struct ControlGroups {
    /// One group: the process's own, or an ancestor.
    public struct Group {
        /// The kernel's path of the group, such as `/system.slice/coalesced.service`.
        public let name: String
        fileprivate let folder: String
        fileprivate let read: (String) -> String?

        /// The text of a file of the group, such as `memory.max`; `nil` if the group has no such file.
        public func text(of file: String) -> String? { read("\(folder)/\(file)") }
    }

    /// The lines of `/proc/self/cgroup`, one for each hierarchy, split into fields.
    private let hierarchies: [[Substring]]
    private let read: (String) -> String?

    /// Reads the present groups from the system's files.
    public init() { self.init(reading: KernelFile.text) }

    /// - Parameter read: returns the text of the file at a path.
    init(reading read: @escaping (String) -> String?) {
        self.read = read
        // The fields: number, controllers, path.
        hierarchies = (read("/proc/self/cgroup") ?? "").split(separator: "\n").map {
            $0.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
        }
    }

    /// The groups of version 2, one tree for all controllers: the process's own group, then its ancestors up to the
    /// root.
    public var unified: [Group] { groups(under: "/sys/fs/cgroup") { $0[0] == "0" && $0[1].isEmpty } }

    /// The groups in a tree of version 1.
    /// - Parameter controller: the controller of the tree, such as `cpu`.
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

    /// The number of processors whose time the process may use, by its smallest quota; `nil` if there is no quota.
    var processorQuota: Double? {
        // Version 2: `max 100000`, or the allowed microseconds and the length of the period in microseconds.
        let quotas = unified.compactMap { group in
            Self.quotient(group.text(of: "cpu.max")?.split(separator: " ") ?? [])
        }
        // Version 1: a quota of -1 means no quota.
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
