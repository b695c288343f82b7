import Testing

@testable import Libevent

@Suite struct ProcessorTests {
    /// What the kernel tells, and how many processors' time that allows.
    static let groups: [(what: String, files: [String: String], quota: Double?)] = [
        ("nothing", [:], nil),
        ("no quota", ["/proc/self/cgroup": "0::/a\n", "/sys/fs/cgroup/a/cpu.max": "max 100000\n"], nil),
        ("version 2", ["/proc/self/cgroup": "0::/a\n", "/sys/fs/cgroup/a/cpu.max": "150000 100000\n"], 1.5),
        (
            "the least on the way up",
            [
                "/proc/self/cgroup": "0::/a/b/c\n", "/sys/fs/cgroup/a/b/c/cpu.max": "800000 100000\n",
                "/sys/fs/cgroup/a/b/cpu.max": "max 100000\n", "/sys/fs/cgroup/a/cpu.max": "300000 100000\n",
            ], 3
        ),
        (
            "a container that sees its group at the root, and its path from outside",
            ["/proc/self/cgroup": "0::/docker/1\n", "/sys/fs/cgroup/cpu.max": "50000 100000\n"], 0.5
        ),
        (
            "version 1",
            [
                "/proc/self/cgroup": "5:memory:/m\n4:cpu,cpuacct:/a/b\n0::/\n",
                "/sys/fs/cgroup/cpu/a/b/cpu.cfs_quota_us": "-1\n",
                "/sys/fs/cgroup/cpu/a/b/cpu.cfs_period_us": "100000\n",
                "/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us": "25000\n",
                "/sys/fs/cgroup/cpu/a/cpu.cfs_period_us": "10000\n",
            ], 2.5
        ),
        (
            "what makes no sense is no quota",
            ["/proc/self/cgroup": "0::/a\nx\n0::b\n", "/sys/fs/cgroup/a/cpu.max": "100000 0\n"], nil
        ),
    ]

    @Test(arguments: groups)
    func `the quota of a control group is found in either version`(
        what: String, files: [String: String], quota: Double?
    ) {
        #expect(ControlGroups { files[$0] }.processorQuota == quota)
    }

    @Test(
        arguments: [(8, nil, 8), (8, 1.5, 2), (8, 0.2, 1), (2, 16, 2), (2, 1e300, 2), (0, nil, 1)]
            as [(Int, Double?, Int)])
    func `a quota is rounded up, and never exceeds the permitted processors`(allowed: Int, quota: Double?, count: Int) {
        #expect(processorCount(allowed: allowed, quota: quota) == count)
    }

    @Test func `control groups are listed from the inside out`() {
        let groups = ControlGroups { ["/proc/self/cgroup": "0::/a/b\n", "/sys/fs/cgroup/a/memory.max": "max"][$0] }
        #expect(groups.unified.map(\.name) == ["/a/b", "/a", "/"])
        #expect(groups.unified.map { $0.text(of: "memory.max") } == [nil, "max", nil])
    }
}
