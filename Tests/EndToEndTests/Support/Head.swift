/// The start line and the fields of a message as they came. Lenient: the harness shows what was sent.
struct Head: Sendable {
    let bytes: [UInt8]
    private let lines: [Range<Int>]

    /// Where the head that begins at `start` ends (behind the empty line), if it is all there.
    static func end(in bytes: [UInt8], from start: Int) -> Int? {
        var index = start + 3
        while index < bytes.count {
            switch bytes[index] {
            case 0x0A where bytes[index - 2] == 0x0A && bytes[index - 1] == 0x0D: return index + 1
            case 0x0A, 0x0D: index += 1
            default: index += 2 // the end is four bytes of CR and LF: every other byte is enough to find them
            }
        }
        return nil
    }

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
        var lines: [Range<Int>] = []
        var start = 0
        while start < bytes.count, let feed = bytes[start...].firstIndex(of: 0x0A) {
            let end = feed > start && bytes[feed - 1] == 0x0D ? feed - 1 : feed
            if end > start { lines.append(start..<end) }
            start = feed + 1
        }
        self.lines = lines
    }

    var text: String { String(decoding: bytes, as: UTF8.self) }
    var startLine: String { lines.first.map { String(decoding: bytes[$0], as: UTF8.self) } ?? "" }

    private func word(_ index: Int) -> String {
        let words = startLine.split(separator: " ", maxSplits: 2)
        return index < words.count ? String(words[index]) : ""
    }

    var method: String { word(0) }
    var target: String { word(1) }
    var path: String { String(target.prefix { $0 != "?" }) }
    var version: String { startLine.hasPrefix("HTTP/") ? word(0) : word(2) }
    var status: Int { Int(word(1)) ?? 0 }

    /// Every line of that name, in order, without outer white space.
    func all(_ name: String) -> [String] {
        let wanted = Array(name.utf8)
        return lines.dropFirst().compactMap { line in
            let colon = line.lowerBound + wanted.count
            guard colon < line.upperBound, bytes[colon] == 0x3A else { return nil }
            for (got, letter) in zip(bytes[line.lowerBound..<colon], wanted) where got | 0x20 != letter | 0x20 {
                return nil
            }
            return String(decoding: bytes[(colon + 1)..<line.upperBound].trimmingSpaces, as: UTF8.self)
        }
    }

    /// The combined value of all lines of that name (RFC 9110 §5.2), nil when there is none.
    subscript(name: String) -> String? {
        let values = all(name)
        return values.isEmpty ? nil : values.joined(separator: ", ")
    }

    var contentLength: Int? { all("content-length").first.flatMap { Int($0) } }
    var isChunked: Bool { all("transfer-encoding").last?.lowercased().hasSuffix("chunked") ?? false }
}

extension ArraySlice<UInt8> {
    var trimmingSpaces: Self {
        drop { $0 == 0x20 || $0 == 0x09 }.reversed().drop { $0 == 0x20 || $0 == 0x09 }.reversed()[...]
    }
}
