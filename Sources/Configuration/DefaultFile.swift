/// Keys as a file has them, each with its comment and a value: what the shipped file is made of.
enum DefaultFile {
    /// Characters in a line of comment.
    private static let width = 110

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
    static func comment(_ text: String, _ range: String? = nil) -> [String] {
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
