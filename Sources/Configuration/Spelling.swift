/// Shows words that were not understood, and guesses the intended ones.
package enum Spelling {
    /// The most characters of a word that are shown; enough to recognise it.
    private static let longest = 100
    /// The fewest characters of a prefix that is taken as an abbreviation, such as `err`.
    private static let shortest = 3

    /// `text` for a message: shortened, without what may be a password, and with control characters escaped, since a
    /// terminal may execute them.
    package static func shown(_ text: String) -> String {
        let text = withoutPassword(masked(text))
        let shown = text.prefix(longest).unicodeScalars.reduce(into: "") { shown, scalar in
            shown += scalar.properties.generalCategory == .control ? scalar.escaped(asASCII: true) : String(scalar)
        }
        return text.count > longest ? shown + "…" : shown
    }

    /// A text that is no URL with `***` in place of a user name and a password, such as `user:password@host`.
    private static func withoutPassword(_ text: String) -> String {
        guard !text.hasPrefix("unix:") || text.hasPrefix("unix://"), let at = text.lastIndex(of: "@") else {
            return text
        }
        let start = text[..<at].firstRange(of: "://")?.upperBound ?? text.startIndex
        // Programs differ in whether a word alone is a user of Redis or a password.
        return text[start..<at].contains(":") || text.lowercased().hasPrefix("redis")
            ? text[..<start] + "***" + text[at...] : text
    }

    /// `text` with `***` in place of the user name and password of a URL (RFC 3986 §3.2.1).
    package static func masked(_ text: String) -> String {
        text.replacing(#/://[^/?#\s]*@/#, with: "://***@")
    }

    /// The candidate with the fewest changed letters, if they are few for the length of `word`. Otherwise the only
    /// candidate that begins with `word`.
    package static func nearest(to word: String, among candidates: [String]) -> String? {
        let allowed = max(1, word.count / 3)
        let best = candidates.map { (distance: distance(word.lowercased(), $0.lowercased()), word: $0) }
            .min { $0.distance < $1.distance }
        if let best, best.distance <= allowed { return best.word }
        let longer = word.count < shortest ? [] : candidates.filter { $0.hasPrefix(word.lowercased()) }
        return longer.count == 1 ? longer[0] : nil
    }

    /// The Levenshtein distance, where a swap of two neighbours counts as one change.
    static func distance(_ left: String, _ right: String) -> Int {
        let left = Array(left.unicodeScalars)
        let right = Array(right.unicodeScalars)
        guard !left.isEmpty, !right.isEmpty else { return max(left.count, right.count) }
        var rows = [Array(0...right.count)]
        for i in 1...left.count {
            var row = [i]
            for j in 1...right.count {
                let change = left[i - 1] == right[j - 1] ? 0 : 1
                var best = min(rows[i - 1][j] + 1, row[j - 1] + 1, rows[i - 1][j - 1] + change)
                if i > 1, j > 1, left[i - 1] == right[j - 2], left[i - 2] == right[j - 1] {
                    best = min(best, rows[i - 2][j - 2] + 1)
                }
                row.append(best)
            }
            rows.append(row)
        }
        return rows[left.count][right.count]
    }
}
