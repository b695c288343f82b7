/// Numbers and names as ASCII, straight into bytes. For the scrape, not for the hot path.
extension [UInt8] {
    mutating func append(_ text: String) { append(contentsOf: text.utf8) }

    /// The number in decimal, with zeros before it up to `width`.
    mutating func append(decimal number: UInt64, width: Int = 1) {
        let start = count
        var rest = number
        repeat {
            append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10))
            rest /= 10
        } while rest > 0
        while count - start < width { append(UInt8(ascii: "0")) }
        self[start...].reverse()
    }

    mutating func append(decimal number: Int, width: Int = 1) {
        if number < 0 { append(UInt8(ascii: "-")) }
        append(decimal: UInt64(number.magnitude), width: width)
    }

    /// Nanoseconds as seconds, exactly: `0.00025`, `2.5`, `60`.
    mutating func append(exactSeconds nanoseconds: UInt64) {
        append(decimal: nanoseconds / 1_000_000_000)
        let fraction = nanoseconds % 1_000_000_000
        guard fraction > 0 else { return }
        append(UInt8(ascii: "."))
        append(decimal: fraction, width: 9)
        while last == UInt8(ascii: "0") { removeLast() }
    }

}
