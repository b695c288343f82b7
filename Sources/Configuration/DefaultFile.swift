/// The file that is shipped: every key with its comment and its default, made from the table of keys.
public enum DefaultFile {
    /// Characters in a line of comment.
    private static let width = 110

    /// What `config/coalesced.yaml` holds.
    public static var text: String {
        let head = comment(
            """
            The configuration of coalesced. Every key is here, with its default: a file needs only what differs. \
            `coalesced check` names the line and column of every mistake; `SIGHUP` makes a running proxy read the file \
            again. Durations are written 500ms, 30s, 5m, 1h, 1d; sizes 512B, 64KiB, 256MiB, 1GB.
            """)
        return (head + [""] + lines(of: KeyTable.all, in: Settings())).joined(separator: "\n") + "\n"
    }

    /// The lines of YAML for `keys`, each below its comment.
    static func lines<Root>(of keys: [Key<Root>], in root: Root) -> [String] {
        var lines: [String] = []
        for key in keys {
            // An empty line between keys, since each has its own comment above it.
            lines.append("")
            lines += comment(key.doc, key.range.map { "(\($0))" })
            let value = key.write(root)
            if let only = value.first, value.count == 1 {
                lines.append("\(key.name): \(only)")
            } else {
                lines.append("\(key.name):")
                lines += value.map { $0.isEmpty ? "" : "  " + $0 }
            }
            lines += key.example.map { "# " + $0 }
        }
        // The first line of a group follows its key at once.
        return Array(lines.dropFirst())
    }

    /// `text` in lines, and `range` after it in one piece.
    private static func comment(_ text: String, _ range: String? = nil) -> [String] {
        var lines: [String] = []
        var line = "#"
        for word in text.split(separator: " ").map(String.init) + (range.map { [$0] } ?? []) {
            if line.count + 1 + word.count > width {
                lines.append(line)
                line = "#"
            }
            line += " " + word
        }
        return lines + [line]
    }
}
