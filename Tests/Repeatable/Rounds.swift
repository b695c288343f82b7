import Glibc

/// How many cases the tests with random numbers try, and which. `.ci/run` tries the same few each time; `.ci/long` tries
/// many, with seeds of its own.
package enum Rounds {
    /// `COALESCED_TEST_ROUNDS`: by how much the number of cases written in a test is multiplied.
    package static let count = variable("COALESCED_TEST_ROUNDS").map { max(1, Int(clamping: $0)) } ?? 1
    /// `COALESCED_TEST_SEED`: what is added to the seeds written in the tests.
    package static let seed = variable("COALESCED_TEST_SEED") ?? 0

    /// The seeds of a test that tries `cases` of them in one round.
    package static func seeds(_ cases: Int) -> Range<UInt64> { seed..<seed + UInt64(cases * count) }

    private static func variable(_ name: String) -> UInt64? {
        unsafe getenv(name).flatMap { UInt64(unsafe String(cString: $0)) }
    }
}

extension SeededGenerator {
    /// The numbers of one test: others with another `Rounds.seed`.
    package init(ofTest number: UInt64) { self.init(seed: number &+ Rounds.seed) }
}
