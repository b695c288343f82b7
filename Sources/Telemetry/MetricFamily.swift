public import Bytes

/// One metric with all its samples, for the metrics page. Made at the scrape, never on the hot path.
public struct MetricFamily: Sendable {
    /// The Prometheus types in use.
    public enum Kind: UInt8, PublicName {
        case counter, gauge, histogram

        public var name: StaticString {
            switch self {
            case .counter: "counter"
            case .gauge: "gauge"
            case .histogram: "histogram"
            }
        }
    }

    /// Without the prefix and without a counter's `_total`: `[a-z0-9_]+`.
    public let name: String
    public let help: String
    public let kind: Kind
    public let samples: [MetricSample]

    /// - Parameter name: without prefix and suffix, which the page adds.
    public init(_ name: String, _ help: String, _ kind: Kind, _ samples: [MetricSample]) {
        self.name = name
        self.help = help
        self.kind = kind
        self.samples = samples
    }

    /// A value that only grows, with samples by labels.
    public static func counter(_ name: String, _ help: String, _ samples: [MetricSample]) -> MetricFamily {
        MetricFamily(name, help, .counter, samples)
    }

    /// A value that only grows.
    public static func counter(_ name: String, _ help: String, _ value: UInt64) -> MetricFamily {
        counter(name, help, [MetricSample([], .whole(value))])
    }

    /// A value that goes up and down, with samples by labels.
    public static func gauge(_ name: String, _ help: String, _ samples: [MetricSample]) -> MetricFamily {
        MetricFamily(name, help, .gauge, samples)
    }

    /// A value that goes up and down.
    public static func gauge(_ name: String, _ help: String, _ value: UInt64) -> MetricFamily {
        gauge(name, help, [MetricSample([], .whole(value))])
    }
}

/// One value of a family.
public struct MetricSample: Sendable {
    /// A number as it is written on the page.
    public enum Value: Sendable {
        case whole(UInt64)
        /// Written as seconds.
        case nanoseconds(UInt64)
        /// Written as a histogram in seconds.
        case durations(DurationCounts)
    }

    /// The labels that distinguish the sample from the family's others; may be empty.
    public let labels: [MetricLabel]
    public let value: Value

    /// - Parameter labels: in the order of the page.
    public init(_ labels: [(name: String, value: String)], _ value: Value) {
        self.labels = labels.map(MetricLabel.init)
        self.value = value
    }
}

/// A label. The program chooses its name; its value may be any text.
public struct MetricLabel: Sendable, Equatable {
    /// Both unescaped; the page escapes the value.
    public let name: String
    public let value: String

    public init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
    }
}
