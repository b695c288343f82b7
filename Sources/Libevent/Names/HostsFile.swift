/// The names in hosts(5): each line has an address and its names.
///
/// The text is searched only when a name is looked up. The files that block advertisements have a hundred thousand lines,
/// and a loop answers no client while it makes a table of them. Searching such a file takes a few milliseconds.
struct HostsFile {
    private let text: [UInt8]

    /// - Parameter text: the text of the file.
    init(_ text: [UInt8]) { self.text = text }

    /// The addresses of `name`, in the order of the file, without ports.
    /// - Parameter name: in lower case.
    func addresses(of name: String) -> [SocketAddress] {
        let wanted = Array((name.hasSuffix(".") ? name.dropLast() : name[...]).utf8)
        var found: [SocketAddress] = []
        let end = text.count
        var index = 0
        while index < end {
            var address: Range<Int>?
            var isNamed = false
            while index < end, text[index] != Self.lineEnd {
                if text[index] == Self.comment {
                    index = text[index...].firstIndex(of: Self.lineEnd) ?? end
                } else if Self.isSpace(text[index]) {
                    index += 1
                } else {
                    let word = word(at: index)
                    index = word.upperBound
                    if address == nil { address = word } else if isName(word, wanted) { isNamed = true }
                }
            }
            index += 1
            if isNamed, let address,
                let literal = SocketAddress(literal: String(decoding: text[address], as: UTF8.self), port: 0)
            {
                found.append(literal)
            }
        }
        return found
    }

    private func word(at start: Int) -> Range<Int> {
        var end = start
        while end < text.count, !Self.isSpace(text[end]), text[end] != Self.lineEnd, text[end] != Self.comment {
            end += 1
        }
        return start..<end
    }

    /// Whether the word is `name`, in any case.
    private func isName(_ word: Range<Int>, _ name: [UInt8]) -> Bool {
        guard word.count == name.count else { return false }
        for index in name.indices {
            let byte = text[word.lowerBound + index]
            let isCapital = byte >= UInt8(ascii: "A") && byte <= UInt8(ascii: "Z")
            if (isCapital ? byte | 0x20 : byte) != name[index] { return false }
        }
        return true
    }

    private static let (lineEnd, comment) = (UInt8(ascii: "\n"), UInt8(ascii: "#"))
    private static func isSpace(_ byte: UInt8) -> Bool {
        byte == 0x20 || (byte >= 0x09 && byte <= 0x0d && byte != 0x0a)
    }
}
