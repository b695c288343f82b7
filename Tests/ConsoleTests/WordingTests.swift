@testable import Console
import Testing

@Suite struct WordingTests {
    @Test(
        arguments: [
            (0, "0 B"), (999, "999 B"), (1000, "1.0 KiB"), (1536, "1.5 KiB"), (0x14p10, "20 KiB"),
            (0xdbp20, "219 MiB"),
            (0x3ffp20, "1.0 GiB"), (0x5p40, "5.0 TiB"), (-1, "0 B"), (.nan, "0 B"),
        ] as [(Double, String)])
    func `byte counts are written in short form`(count: Double, text: String) { #expect(Wording.bytes(count) == text) }

    @Test(
        arguments: [
            (0, "0"), (0.04, "0.0"), (0.44, "0.4"), (9.94, "9.9"), (9.96, "10"), (1842.3, "1842"), (19_050, "19k"),
            (2e7, "20M"),
            (-3, "0"),
        ] as [(Double, String)])
    func `rates are written in short form`(rate: Double, text: String) { #expect(Wording.rate(rate) == text) }

    @Test(
        arguments: [
            (0, "0s"), (99, "99s"), (100, "1m"), (3599, "59m"), (3600, "1h 0m"), (15_120, "4h 12m"), (273_600, "3d 4h"),
        ] as [(Double, String)])
    func `durations are written in short form`(seconds: Double, text: String) {
        #expect(Wording.duration(seconds) == text)
    }

    @Test(
        arguments: [
            ("unix:/run/app.sock", 18, "unix:/run/app.sock"), ("unix:/run/app.sock", 12, "unix....sock"),
            ("abcdefgh", 4, "...h"), ("abcd", 3, "abcd"), ("", 16, ""),
        ] as [(String, Int, String)])
    func `a long name keeps both ends`(text: String, width: Int, name: String) {
        #expect(Wording.name(text, width: width) == name)
    }

    @Test(
        arguments: [
            ("abc", 3, "abc"), ("abcd", 3, "ab…"), ("abcd", 1, "…"), ("abcd", 0, ""), ("", 0, ""),
            ("a\u{1B}[2Jb\u{9B}é\n", 80, "a?[2Jb???"),
        ] as [(String, Int, String)])
    func `a line is as wide as the terminal, and moves no cursor`(text: String, width: Int, line: String) {
        #expect(Wording.line(text, width: width) == line)
    }
}
