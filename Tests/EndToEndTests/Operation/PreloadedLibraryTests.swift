import Testing

/// A library that is loaded before the program, as libfaketime is, may do anything to the environment.
@Suite(.scenario, .disabled(if: Program.isThreadSanitized, "it runs before the sanitizer has begun"))
struct PreloadedLibraryTests {
    /// Sets more variables than there are, so that the list of them must move, and none of ours: before `main`, and as
    /// Swift's own library opens a file to look for the arguments, which it may do before that.
    private static let source = """
        #define _GNU_SOURCE
        #include <dlfcn.h>
        #include <stdio.h>
        #include <stdlib.h>
        __attribute__((constructor)) static void set_variables(void) {
            char name[32];
            for (int i = 0; i < 64; i++) { snprintf(name, sizeof name, "PRELOADED_%d", i); setenv(name, "1", 1); }
        }
        FILE *fopen(const char *path, const char *mode) {
            FILE *(*next)(const char *, const char *) = dlsym(RTLD_NEXT, "fopen");
            set_variables();
            return next(path, mode);
        }

        """

    /// Runs the program to its end with the library loaded before it.
    private func run(_ words: [String], files: [String: String] = [:]) throws -> Program.Run {
        let program = try start(words, files: files)
        defer { program.stop() }
        return try Program.Run(
            exit: program.exited(within: .seconds(20)), output: program.output, errors: program.diagnostics)
    }

    private func start(_ words: [String], files: [String: String] = [:]) throws -> Program {
        let folder = try System.makeTemporaryFolder()
        for (name, text) in files { try System.write(text, to: "\(folder)/\(name)") }
        try System.write(Self.source, to: "\(folder)/preloaded.c")
        let compile =
            "$(command -v cc || command -v clang) -shared -fPIC -o \(folder)/preloaded.so \(folder)/preloaded.c"
        let shell = "\(compile) && LD_PRELOAD=\(folder)/preloaded.so exec \"$@\""
        return try Program(
            folder: folder, words.map { $0.replacing("@", with: folder) }, shell: shell)
    }

    @Test func `the command and its options are read in spite of a preloaded library`() throws {
        let version = try run(["--version"])
        #expect(version.exit == .code(0) && version.output.hasPrefix("coalesced "), "\(version.everything)")
        let check = try run(["check", "@/bad.yaml"], files: ["bad.yaml": "workers: many\n"])
        #expect(check.exit == .code(78) && check.errors.contains("bad.yaml:1:10: "), "\(check.everything)")
        let wrong = try run(["serve", "--nonsense"])
        #expect(wrong.exit == .code(64) && wrong.errors.contains("--nonsense"), "\(wrong.everything)")
        let status = try run(["status", "--admin", "unix:@/nobody"])
        #expect(status.exit == .code(69) && status.errors.contains("/nobody"), "\(status.everything)")
    }

    @Test(arguments: [["serve"], []])
    func `the program listens at the given address in spite of a preloaded library`(_ command: [String]) throws {
        let program = try start(
            command + ["--listen", "unix:@/s", "--upstream", "http://127.0.0.1:9", "--admin", "unix:@/a"])
        defer { program.stop() }
        try eventually("it listens; \(program.diagnostics)") {
            program.diagnostics.contains("listening on unix:\(program.folder)/s")
        }
        program.terminate()
        #expect(try program.exited() == .code(0))
        #expect(!program.diagnostics.contains("listening on 127.0.0.1:8080"))
    }
}
