// swift-tools-version: 6.2
import PackageDescription

// Declarations that other targets use are `package`, and `public` in `Coalescing`, which is a product. They are `public`
// in the targets of the hot path too (`Bytes`, `HTTPSemantics`, `Libevent`, `Routing`, `Storage`, `Telemetry`): Swift 6.3
// optimizes across modules only what is `public`. With `package` everywhere, a hit takes 12,110 instructions instead of
// 7,570.

/// Every target is built strictly: Swift 6 mode, memory-unsafe constructs marked, no warning survives.
let strict: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .strictMemorySafety(),
    .treatAllWarnings(as: .error),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
]

/// `Lifetimes` lets our own types hand out a `Span` of what they hold.
let lending = strict + [.enableExperimentalFeature("Lifetimes")]

/// A product of another package, for the daemon alone: its trait is on by default, so `make` and `swift build` need not name
/// it. Whoever adopts only the library names this package with `traits: []`, by URL or by path, and Swift fetches no other.
/// (A package in a folder of its own could be named by path only, and the one that uses it by path no longer by URL.)
func theirs(_ name: String, of package: String) -> Target.Dependency {
    .product(name: name, package: package, condition: .when(traits: ["Daemon"]))
}

let package = Package(
    name: "coalesced",
    // What the library needs of Apple's systems (`Mutex`). The daemon runs on Linux.
    platforms: [.macOS(.v15), .iOS(.v18), .tvOS(.v18), .watchOS(.v11), .visionOS(.v2)],
    products: [
        .library(name: "Coalescing", targets: ["Coalescing"]),
        .library(name: "CoalescingPlaces", targets: ["CoalescingPlaces"]),
        .library(name: "CoalescingDispatch", targets: ["CoalescingDispatch"]),
        .library(name: "CoalescingFoundation", targets: ["CoalescingFoundation"]),
        .executable(name: "coalesced", targets: ["coalesced"]),
    ],
    traits: [.default(enabledTraits: ["Daemon"]), .trait(name: "Daemon", description: "The caching proxy.")],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-http-structured-headers", from: "1.7.0"),
    ],
    targets: [
        .target(name: "Bytes", swiftSettings: lending),
        .target(name: "Coalescing", exclude: ["README.md"], swiftSettings: strict),
        // What is built on the library's core. Dispatch and Foundation have a target each: whoever does not name one does not
        // link it.
        .target(name: "CoalescingPlaces", dependencies: ["Coalescing"], swiftSettings: strict),
        .target(name: "CoalescingDispatch", dependencies: ["Coalescing"], swiftSettings: strict),
        .target(name: "CoalescingFoundation", dependencies: ["Coalescing"], swiftSettings: strict),
        .target(
            name: "HTTPSemantics",
            dependencies: [
                "Bytes",
                theirs("RawStructuredFieldValues", of: "swift-http-structured-headers"),
            ],
            swiftSettings: lending
        ),
        .systemLibrary(
            name: "CLibevent", pkgConfig: "libevent_core",
            providers: [.apt(["libevent-dev", "libc-ares-dev", "pkg-config"])]
        ),
        .target(name: "CArguments"),
        .target(name: "Libevent", dependencies: ["Bytes", "CArguments", "CLibevent"], swiftSettings: lending),
        .systemLibrary(
            name: "COpenSSL", pkgConfig: "openssl", providers: [.apt(["libssl-dev", "pkg-config"])]),
        .target(name: "TLS", dependencies: ["Bytes", "COpenSSL", "Libevent"], swiftSettings: lending),
        .systemLibrary(
            name: "CNGHTTP2", pkgConfig: "libnghttp2", providers: [.apt(["libnghttp2-dev", "pkg-config"])]),
        .target(name: "HTTP2", dependencies: ["Bytes", "CNGHTTP2"], swiftSettings: lending),
        .systemLibrary(name: "CYAML", pkgConfig: "yaml-0.1", providers: [.apt(["libyaml-dev", "pkg-config"])]),
        .target(name: "YAML", dependencies: ["CYAML"], swiftSettings: strict),
        .target(name: "Telemetry", dependencies: ["Bytes", "HTTPSemantics"], swiftSettings: strict),
        .target(name: "Storage", dependencies: ["Bytes", "HTTPSemantics"], swiftSettings: strict),
        .target(name: "SharedTier", dependencies: ["Bytes", "HTTPSemantics"], swiftSettings: strict),
        .target(name: "Redis", dependencies: ["Bytes", "Libevent", "TLS"], swiftSettings: strict),
        .target(
            name: "Upstream",
            dependencies: ["Bytes", "Coalescing", "HTTPSemantics", "Libevent", "TLS", "Telemetry"],
            swiftSettings: lending
        ),
        .target(
            name: "Routing",
            dependencies: [
                "Bytes", "Coalescing", "HTTPSemantics", "Libevent", "Storage", "TLS", "Telemetry", "Upstream",
            ],
            swiftSettings: lending
        ),
        .target(
            name: "Proxy",
            dependencies: [
                "Bytes", "Coalescing", "CoalescingPlaces", "HTTP2", "HTTPSemantics", "Libevent", "Redis", "Routing",
                "SharedTier",
                "Storage", "TLS", "Telemetry", "Upstream", theirs("Logging", of: "swift-log"),
            ],
            swiftSettings: lending
        ),
        .target(
            name: "Admin",
            dependencies: [
                "Bytes", "Coalescing", "HTTPSemantics", "Libevent", "Proxy", "Routing", "Storage", "TLS", "Telemetry",
                "Upstream",
            ],
            swiftSettings: strict),
        .target(
            name: "Configuration",
            dependencies: [
                "Bytes", "Libevent", "Routing", "Admin", "Storage", "TLS", "Upstream", "Telemetry", "HTTPSemantics",
                "YAML",
            ],
            swiftSettings: strict
        ),
        .target(name: "Console", swiftSettings: strict),
        .executableTarget(
            name: "coalesced",
            dependencies: [
                "Bytes", "Coalescing", "CoalescingPlaces", "Console", "Libevent", "Proxy", "Routing", "Admin",
                "Configuration", "Storage", "TLS", "Upstream", "Telemetry",
                theirs("ArgumentParser", of: "swift-argument-parser"),
                theirs("Logging", of: "swift-log"),
            ],
            swiftSettings: strict
        ),
        // What `make bench` runs; CEpoll is for its clients and its origin.
        .systemLibrary(name: "CEpoll"),
        .executableTarget(name: "BareResponder"),
        .executableTarget(
            name: "Benchmark",
            dependencies: ["Bytes", "CEpoll", "COpenSSL", "Coalescing", "HTTPSemantics", "Repeatable", "Storage"],
            swiftSettings: strict
        ),
        // For tests and the benchmark only.
        .target(name: "Repeatable", path: "Tests/Repeatable", swiftSettings: strict),
        // For tests of what runs on a loop.
        .target(name: "LoopTesting", dependencies: ["Libevent"], path: "Tests/LoopTesting", swiftSettings: strict),
        // For tests of what needs requests or routes.
        .target(
            name: "RouteTesting", dependencies: ["Bytes", "HTTPSemantics", "Routing", "Upstream"],
            path: "Tests/RouteTesting", swiftSettings: strict),
        // Certificates for tests.
        .target(
            name: "CertificateMaking", dependencies: ["Bytes", "COpenSSL", "TLS"], path: "Tests/CertificateMaking",
            swiftSettings: strict),
        // A name server for tests.
        .target(name: "NameServing", dependencies: ["Libevent"], path: "Tests/NameServing", swiftSettings: strict),
        .testTarget(name: "BytesTests", dependencies: ["Bytes", "Repeatable"], swiftSettings: strict),
        .testTarget(
            name: "CoalescingTests", dependencies: ["Coalescing", "CoalescingPlaces", "Repeatable"],
            swiftSettings: strict),
        // As a stranger uses the library: by its public declarations alone, with Foundation beside it.
        .testTarget(
            name: "CoalescingUseTests", dependencies: ["Coalescing", "CoalescingPlaces"], swiftSettings: strict),
        .testTarget(
            name: "CoalescingPlacesTests",
            dependencies: ["Coalescing", "CoalescingDispatch", "CoalescingFoundation", "CoalescingPlaces"],
            swiftSettings: strict),
        // The examples that the library's pages print.
        .testTarget(
            name: "ExampleTests", dependencies: ["Coalescing", "CoalescingDispatch", "CoalescingPlaces"],
            swiftSettings: strict),
        .testTarget(
            name: "HTTPSemanticsTests", dependencies: ["HTTPSemantics", "Bytes", "Repeatable"], swiftSettings: strict),
        .testTarget(
            name: "LibeventTests", dependencies: ["Libevent", "Bytes", "LoopTesting", "NameServing", "Repeatable"],
            swiftSettings: strict),
        .testTarget(name: "HTTP2Tests", dependencies: ["HTTP2", "Bytes"], swiftSettings: strict),
        .testTarget(
            name: "TLSTests", dependencies: ["TLS", "Bytes", "CertificateMaking", "Libevent", "LoopTesting"],
            swiftSettings: strict),
        .testTarget(
            name: "StorageTests", dependencies: ["Storage", "HTTPSemantics", "Bytes", "Repeatable"],
            swiftSettings: strict),
        .testTarget(
            name: "SharedTierTests", dependencies: ["SharedTier", "Bytes", "HTTPSemantics", "Repeatable"],
            swiftSettings: strict),
        .testTarget(
            name: "TelemetryTests", dependencies: ["Telemetry", "Bytes", "HTTPSemantics"], swiftSettings: strict),
        .testTarget(
            name: "RedisTests",
            dependencies: [
                "Redis", "Bytes", "CertificateMaking", "Libevent", "LoopTesting", "NameServing", "Repeatable", "TLS",
            ],
            swiftSettings: strict),
        .testTarget(
            name: "ConfigurationTests",
            dependencies: [
                "Configuration", "Bytes", "CertificateMaking", "HTTPSemantics", "Libevent", "Routing", "Admin",
                "Storage",
                "TLS", "Upstream", "Telemetry",
            ], swiftSettings: strict),
        .testTarget(
            name: "UpstreamTests",
            dependencies: [
                "Upstream", "Bytes", "CertificateMaking", "Coalescing", "COpenSSL", "HTTPSemantics", "Libevent",
                "LoopTesting", "NameServing", "Repeatable", "TLS", "Telemetry",
            ],
            swiftSettings: strict),
        .testTarget(
            name: "RoutingTests",
            dependencies: [
                "Routing", "Bytes", "HTTPSemantics", "Libevent", "LoopTesting", "Repeatable", "RouteTesting", "Storage",
                "Telemetry", "Upstream",
            ],
            swiftSettings: strict),
        .testTarget(
            name: "ProxyTests",
            dependencies: [
                "Proxy", "Bytes", "Coalescing", "HTTPSemantics", "Libevent", "LoopTesting", "Repeatable",
                "RouteTesting",
                "Routing", "Storage", "TLS", "Telemetry", "Upstream",
                theirs("Logging", of: "swift-log"),
            ],
            swiftSettings: strict
        ),
        .testTarget(
            name: "AdminTests",
            dependencies: [
                "Admin", "Bytes", "CertificateMaking", "HTTPSemantics", "Libevent", "LoopTesting", "Proxy", "Routing",
                "Storage", "TLS", "Telemetry", "Upstream",
                theirs("Logging", of: "swift-log"),
            ],
            swiftSettings: strict
        ),
        .testTarget(name: "YAMLTests", dependencies: ["YAML"], swiftSettings: strict),
        .testTarget(name: "ConsoleTests", dependencies: ["Console"], swiftSettings: strict),
        .testTarget(
            name: "EndToEndTests",
            dependencies: [
                "coalesced", "Bytes", "CertificateMaking", "CNGHTTP2", "COpenSSL", "Libevent", "NameServing",
                "Repeatable",
                "TLS",
            ],
            swiftSettings: strict),
    ]
)

// `.ci/run` builds the tests of some targets under the sanitizers, and nothing that those do not use.
if let chosen = Context.environment["COALESCED_TEST_TARGETS"]?.split(separator: " ") {
    package.targets.removeAll { $0.type == .test && !chosen.contains("\($0.name)") }
}
