import Glibc

/// A child process with its output in a file.
///
/// Not Foundation's `Process`: the one thread with which it watches children blocks for ever on a child that closes the
/// descriptors it inherits, as Varnish does.
final class Child {
    let identifier: pid_t
    private var hasEnded = false

    init(_ words: [String], output: String) throws {
        var actions = unsafe posix_spawn_file_actions_t()
        unsafe posix_spawn_file_actions_init(&actions)
        defer { unsafe posix_spawn_file_actions_destroy(&actions) }
        unsafe posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        unsafe posix_spawn_file_actions_addopen(&actions, 1, output, O_WRONLY | O_CREAT | O_TRUNC, 0o644)
        unsafe posix_spawn_file_actions_adddup2(&actions, 1, 2)
        var list = unsafe words.map { unsafe strdup($0) } + [nil]
        defer { for index in unsafe list.indices { unsafe free(list[index]) } }
        var child: pid_t = 0
        let code = unsafe posix_spawnp(&child, words[0], &actions, nil, &list, environ)
        guard code == 0 else { throw System.Failure(call: "posix_spawn \(words[0])", code: code) }
        identifier = child
    }

    deinit { stop() }

    var isRunning: Bool {
        if hasEnded { return false }
        var status: Int32 = 0
        hasEnded = unsafe waitpid(identifier, &status, WNOHANG) == identifier
        return !hasEnded
    }

    func signal(_ number: Int32) { if isRunning { kill(identifier, number) } }

    /// Whether the child ended by itself within this many seconds.
    @discardableResult
    func wait(seconds: Int) -> Bool {
        let deadline = System.now + Int64(seconds) * 1_000_000_000
        while isRunning {
            guard System.now < deadline else { return false }
            System.nap(milliseconds: 2)
        }
        return true
    }

    /// Asks the child to end, and kills it after three seconds.
    func stop() {
        signal(SIGTERM)
        if !wait(seconds: 3) {
            signal(SIGKILL)
            wait(seconds: 3)
        }
    }
}
