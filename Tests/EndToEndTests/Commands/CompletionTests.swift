import Testing

/// What a shell offers for the next word.
@Suite(.scenario) struct CompletionTests {
    /// What bash offers for the last of `words`, with the files `a.yaml` and `b.yaml` in the folder it is in.
    private func offered(_ words: String...) throws -> [String] {
        let folder = try System.makeTemporaryFolder()
        for name in ["a.yaml", "b.yaml"] { try System.write("", to: "\(folder)/\(name)") }
        // As bash itself calls what `complete` named.
        let shell = """
            cd "\(folder)" && "$1" --generate-completion-script bash >completions && . ./completions && shift &&
            COMP_WORDS=(coalesced "$@") && COMP_CWORD=$# && COMP_LINE="${COMP_WORDS[*]}" && COMP_POINT=${#COMP_LINE} &&
            _coalesced coalesced "${COMP_WORDS[$#]}" "${COMP_WORDS[$#-1]}"; printf '%s\\n' "${COMPREPLY[@]}"
            """
        let program = try Program(
            folder: folder, words, shell: "exec bash -c '\(shell.replacing("'", with: "'\\''"))' bash \"$@\"")
        defer { program.stop() }
        #expect(try program.exited() == .code(0))
        #expect(program.diagnostics.isEmpty, "\(program.diagnostics)")
        return program.output.split(separator: "\n").map(String.init).sorted()
    }

    @Test(arguments: ["serve", "check", "purge", "status", "top"])
    func `a configuration file completes to a file of the folder`(_ command: String) throws {
        #expect(try offered(command, "--config", "b") == ["b.yaml"])
    }

    @Test func `the file to check completes to a file of the folder`() throws {
        #expect(try offered("check", "a") == ["a.yaml"])
    }

    @Test func `a value from a fixed set completes to one of the set`() throws {
        #expect(try offered("serve", "--log-level", "") == ["critical", "debug", "error", "info", "notice", "warning"])
        #expect(try offered("serve", "--admin", "") == ["off"])
        #expect(try offered("serve", "--access-log", "b") == ["b.yaml"])
    }

    @Test(arguments: [["serve", "--listen"], ["serve", "--upstream"], ["status", "--admin"], ["demo", "--listen"]])
    func `an address completes to no file`(_ words: [String]) throws {
        #expect(try offered(words[0], words[1], "") == [])
    }
}
