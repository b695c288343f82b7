/// The metrics page: Prometheus' text exposition format, version 0.0.4.
/// https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format
public enum PrometheusText {
    /// For `Content-Type` of the page.
    public static let contentType = "text/plain; version=0.0.4; charset=utf-8"
    /// Begins every name.
    static let prefix = "coalesced_"

    /// The whole page. Each family's name may come once.
    public static func page(_ families: [MetricFamily]) -> [UInt8] {
        var page: [UInt8] = []
        page.reserveCapacity(32 << 10)
        for family in families { append(family, to: &page) }
        return page
    }

    private static func append(_ family: MetricFamily, to page: inout [UInt8]) {
        // `_total` is put here and nowhere else, so that no counter lacks it.
        let name = prefix + family.name + (family.kind == .counter ? "_total" : "")
        page.append("# HELP \(name) ")
        page.append(escaping: family.help, quote: false)
        page.append("\n# TYPE \(name) \(family.kind.name)\n")
        for sample in family.samples {
            switch sample.value {
            case .whole(let value):
                page.append(name, sample.labels) { $0.append(decimal: value) }
            case .number(let value):
                page.append(name, sample.labels) { $0.append(number: value) }
            case .seconds(let nanoseconds):
                page.append(name, sample.labels) { $0.append(exactSeconds: nanoseconds) }
            case .distribution(let distribution):
                append(distribution, name, sample.labels, to: &page)
            }
        }
    }

    /// Upper bounds in nanoseconds: from a hit's 100 µs to the patience of a person, two or three a decade.
    static let bounds: [UInt64] = [
        100_000, 250_000, 500_000,
        1_000_000, 2_500_000, 5_000_000,
        10_000_000, 25_000_000, 50_000_000,
        100_000_000, 250_000_000, 500_000_000,
        1_000_000_000, 2_500_000_000, 5_000_000_000,
        10_000_000_000, 30_000_000_000, 60_000_000_000,
    ]

    private static func append(
        _ distribution: LatencyDistribution, _ name: String, _ labels: [MetricLabel], to page: inout [UInt8]
    ) {
        for bound in bounds {
            var seconds: [UInt8] = []
            seconds.append(exactSeconds: bound)
            let boundLabel = MetricLabel("le", String(decoding: seconds, as: UTF8.self))
            page.append(name + "_bucket", labels + [boundLabel]) { $0.append(decimal: distribution.count(upTo: bound)) }
        }
        page.append(name + "_bucket", labels + [MetricLabel("le", "+Inf")]) { $0.append(decimal: distribution.count) }
        page.append(name + "_sum", labels) { $0.append(exactSeconds: distribution.sum) }
        page.append(name + "_count", labels) { $0.append(decimal: distribution.count) }
    }
}

extension [UInt8] {
    /// One sample line.
    fileprivate mutating func append(_ name: String, _ labels: [MetricLabel], value: (inout [UInt8]) -> Void) {
        append(name)
        for (index, label) in labels.enumerated() {
            append((index == 0 ? "{" : ",") + label.name + "=\"")
            append(escaping: label.value, quote: true)
            append("\"")
        }
        if !labels.isEmpty { append("}") }
        append(" ")
        value(&self)
        append("\n")
    }

    /// `\` and newline, and in label values `"` too.
    fileprivate mutating func append(escaping text: String, quote: Bool) {
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "\\"): append("\\\\")
            case UInt8(ascii: "\n"): append("\\n")
            case UInt8(ascii: "\"") where quote: append("\\\"")
            default: append(byte)
            }
        }
    }

    /// As Go's `ParseFloat` reads it.
    fileprivate mutating func append(number: Double) {
        if number.isNaN {
            append("NaN")
        } else if number.isInfinite {
            append(number < 0 ? "-Inf" : "+Inf")
        } else {
            append("\(number)")
        }
    }
}
