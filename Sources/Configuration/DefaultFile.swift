/// The lines of the shipped configuration file: each key with a value, below a comment.
enum DefaultFile {
    /// The most characters in a comment line.
    private static let width = 110

    /// The lines of YAML for `keys`, each below its comment.
    static func lines<Root>(of keys: [Key<Root>], in root: Root) -> [String] {
        var lines: [String] = []
        for key in keys {
            let value = key.write(root)
            // A key that a file has only together with its value.
            if value.isEmpty { continue }
            // An empty line between keys, since each has its own comment above it.
            lines.append("")
            lines += comment(key.doc, key.range.map { "(\($0))" })
            if let only = value.first, value.count == 1 {
                lines.append("\(key.name): \(only)")
            } else {
                lines.append("\(key.name):")
                lines += value.map { $0.isEmpty ? "" : "  " + $0 }
            }
            lines += key.example.map { "# " + $0 }
        }
        // Without the first empty line: a group's first key follows the group's own key directly.
        return Array(lines.dropFirst())
    }

    /// Wraps `text` into comment lines. `range` follows the text and is not broken.
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
