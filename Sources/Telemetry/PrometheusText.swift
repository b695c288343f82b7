public import Bytes

/// The metrics page: Prometheus' text exposition format, version 0.0.4.
/// https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format
public enum PrometheusText {
    /// The `Content-Type` of the page.
    public static let contentType: StaticString = "text/plain; version=0.0.4; charset=utf-8"
    /// The prefix of every name.
    static let prefix = "coalesced_"

    /// The whole page. Each family's name may occur only once.
    public static func page(_ families: [MetricFamily]) -> ByteBuffer {
        let page = ByteBuffer(capacity: 32 << 10)
        for family in families { append(family, to: page) }
        return page
    }

    private static func append(_ family: MetricFamily, to page: ByteBuffer) {
        // `_total` is added here and nowhere else, so that no counter lacks it.
        let name = prefix + family.name + (family.kind == .counter ? "_total" : "")
        page.append(string: "# HELP \(name) ")
        page.append(escaping: family.help, quote: false)
        page.append(string: "\n# TYPE \(name) \(family.kind.name)\n")
        for sample in family.samples {
            switch sample.value {
            case .whole(let value): page.append(name, sample.labels) { $0.append(decimal: value) }
            case .nanoseconds(let value): page.append(name, sample.labels) { $0.append(exactSeconds: value) }
            case .durations(let durations): append(durations, name, sample.labels, to: page)
            }
        }
    }

    private static func append(
        _ durations: DurationCounts, _ name: String, _ labels: [MetricLabel], to page: ByteBuffer
    ) {
        // Each of the two adds up the buckets: read it once.
        let (upToBounds, count) = (durations.upToBounds, durations.count)
        for (bound, upTo) in zip(DurationCounts.bounds, upToBounds) {
            let seconds = ByteBuffer(capacity: 16)
            seconds.append(exactSeconds: bound)
            page.append(name + "_bucket", labels + [MetricLabel("le", String(seconds.span))]) {
                $0.append(decimal: upTo)
            }
        }
        page.append(name + "_bucket", labels + [MetricLabel("le", "+Inf")]) { $0.append(decimal: count) }
        page.append(name + "_sum", labels) { $0.append(exactSeconds: durations.sum) }
        page.append(name + "_count", labels) { $0.append(decimal: count) }
    }
}

extension ByteBuffer {
    /// One sample line.
    fileprivate func append(_ name: String, _ labels: [MetricLabel], value: (ByteBuffer) -> Void) {
        append(string: name)
        for (index, label) in labels.enumerated() {
            append(string: (index == 0 ? "{" : ",") + label.name + "=\"")
            append(escaping: label.value, quote: true)
            append("\"")
        }
        if !labels.isEmpty { append("}") }
        append(" ")
        value(self)
        append("\n")
    }

    /// Escapes `\` and newline, and in label values `"` too.
    fileprivate func append(escaping text: String, quote: Bool) {
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "\\"): append("\\\\")
            case UInt8(ascii: "\n"): append("\\n")
            case UInt8(ascii: "\"") where quote: append("\\\"")
            default: append(byte)
            }
        }
    }

    /// Nanoseconds as seconds, exactly: `0.00025`, `2.5`, `60`.
    fileprivate func append(exactSeconds nanoseconds: UInt64) {
        append(decimal: nanoseconds / 1_000_000_000)
        var (fraction, digits) = (nanoseconds % 1_000_000_000, 9)
        guard fraction > 0 else { return }
        while fraction % 10 == 0 { (fraction, digits) = (fraction / 10, digits - 1) }
        append(".")
        append(decimal: fraction, width: digits)
    }
}
