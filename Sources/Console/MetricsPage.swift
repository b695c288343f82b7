/// The samples of a page in Prometheus' text format.
package struct MetricsPage: Sendable {
    struct Sample: Equatable {
        let family: String
        let labels: [String: String]
        let value: Double
    }

    let samples: [Sample]

    /// Lines without a sample are left out.
    package init(_ text: String) {
        samples = text.split(separator: "\n").compactMap { line in
            guard !line.hasPrefix("#"), let space = line.lastIndex(of: " "),
                let value = Double(line[line.index(after: space)...])
            else { return nil }
            let name = line[..<space]
            let family = name.prefix { $0 != "{" }
            return Sample(family: String(family), labels: Self.labels(name.dropFirst(family.count)), value: value)
        }
    }

    /// The labels of `{name="value",…}`, with `\"`, `\\` and `\n` in values.
    private static func labels(_ text: Substring) -> [String: String] {
        var labels: [String: String] = [:]
        var rest = text.dropFirst()
        while let equals = rest.firstIndex(of: "=") {
            let name = String(rest[..<equals])
            rest = rest[equals...].dropFirst(2)
            var value = ""
            while let character = rest.popFirst(), character != "\"" {
                guard character == "\\", let escaped = rest.popFirst() else {
                    value.append(character)
                    continue
                }
                value.append(escaped == "n" ? "\n" : escaped)
            }
            labels[name] = value
            if rest.first == "," { rest.removeFirst() }
        }
        return labels
    }

    /// The sum of the family's samples that have all of `labels`; `nil` if there are none.
    func sum(_ family: String, _ labels: [String: String] = [:]) -> Double? {
        let found = samples.filter { sample in
            sample.family == "coalesced_\(family)" && labels.allSatisfy { sample.labels[$0.key] == $0.value }
        }
        return found.isEmpty ? nil : found.reduce(0) { $0 + $1.value }
    }

    /// All values that `label` has in the family.
    func values(of label: String, in family: String) -> Set<String> {
        Set(samples.compactMap { $0.family == "coalesced_\(family)" ? $0.labels[label] : nil })
    }
}
