import Bytes
import HTTPSemantics
import Repeatable
import Testing

/// What a route takes out of requests: cookies, and languages that the site does not have.
@Suite struct RequestNormalizationTests {
    private typealias Line = (name: String, value: String)

    private static func normalization(strips: [String] = [], languages: [String] = []) -> RequestNormalization? {
        RequestNormalization(
            strippedCookies: strips.map { name in
                let isPrefix = name.hasSuffix("*")
                return CookiePattern(ByteSlice(isPrefix ? String(name.dropLast()) : name), isPrefix: isPrefix)
            }, languages: languages.map { ByteSlice($0) })
    }

    private static func lines(of view: FieldView) -> [String] {
        (0..<view.lines.count).map { "\(String(view.name(at: $0))): \(String(view.value(at: $0)))" }
    }

    /// The lines of a request as they are after normalization.
    private static func normalized(_ fields: [String], by normalization: RequestNormalization?) throws -> [String] {
        let message = wire((["GET /a HTTP/1.1"] + fields + ["Host: h", "", ""]).joined(separator: "\r\n"))
        var parser = RequestHeadParser(limits: .roomy)
        _ = try parser.parse(message.span)
        let request = parser.view(in: message.span)
        guard let block = normalization?.head(of: request, length: parser.head.length) else {
            return Array(lines(of: request).dropLast())
        }
        return Array(lines(of: block.view).dropLast())
    }

    static let cookies: [(strips: [String], sent: [String], kept: [String])] = [
        (["_ga"], ["Cookie: _ga=1; theme=dark; _gid=2"], ["Cookie: theme=dark; _gid=2"]),
        (["_ga", "_gid"], ["Cookie: _ga=1; theme=dark; _gid=2"], ["Cookie: theme=dark"]),
        (["_ga*"], ["Cookie: a=1;_ga_X=2;b=3"], ["Cookie: a=1;b=3"]),
        (["_ga"], ["Cookie: a=1;_ga_X=2;b=3"], ["Cookie: a=1;_ga_X=2;b=3"]),
        (["_ga"], ["Cookie: _ga=1"], []), (["_ga"], ["Cookie: _ga"], []), (["_ga"], ["Cookie: _ga="], []),
        (["*"], ["Cookie: a=1; b; =c", "A: b"], ["A: b"]),
        (["_ga"], ["A: 1", "Cookie: _ga=1", "B: 2"], ["A: 1", "B: 2"]),
        (["_ga"], ["Cookie: _ga=1", "Cookie: a=2", "Cookie: _ga=3; b=4"], ["Cookie: a=2", "Cookie: b=4"]),
        // Odd syntax: pairs as `CookieIterator` reads them.
        (["_ga"], ["Cookie: ;;_ga=1;; ; a=2 ;"], ["Cookie: a=2"]), (["_ga"], ["Cookie: ;;"], []),
        (["_ga"], ["Cookie: ;; a=2 ;"], ["Cookie: ;; a=2 ;"]),
        (["_ga"], ["Cookie:  \t_ga \t= 1; a =b\t;c ; d"], ["Cookie: a =b;c; d"]),
        (["_ga"], ["Cookie: a=\"x; _ga=1; y\"; b=\"_ga=2\""], ["Cookie: a=\"x; y\"; b=\"_ga=2\""]),
        // Names that some origin may take for it stay: what the origin receives counts.
        (["_ga"], ["Cookie: _GA=1; %5fga=2; _ga[x]=3; .ga=4"], ["Cookie: _GA=1; %5fga=2; _ga[x]=3; .ga=4"]),
        (["_ga"], ["cookie: x=_ga; y=1=_ga; _ga=3"], ["cookie: x=_ga; y=1=_ga"]),
        (["_ga"], ["Set-Cookie: _ga=1", "Cookie2: _ga=1"], ["Set-Cookie: _ga=1", "Cookie2: _ga=1"]),
        ([], ["Cookie: a=1", "Accept-Language: de"], ["Cookie: a=1", "Accept-Language: de"]),
    ]

    @Test(arguments: cookies)
    func `cookies are stripped by name, and a line without a cookie goes`(
        strips: [String], sent: [String], kept: [String]
    ) throws {
        #expect(try Self.normalized(sent, by: Self.normalization(strips: strips)) == kept)
    }

    /// The site has `languages`; `nil`: the field is removed.
    static let languages: [(languages: [String], sent: [String], best: String?)] = [
        (["en", "de", "fr"], ["de"], "de"), (["en", "de", "fr"], ["de-AT,de;q=0.9,en;q=0.5"], "de"),
        (["en", "de", "fr"], ["it, fr;q=0.3, en;q=0.30, de;q=0.29"], "fr"), (["en", "de", "fr"], ["DE"], "de"),
        (["en", "de", "fr"], ["es, it"], nil), (["en", "de"], ["*"], nil), (["en", "de"], ["*, de;q=0.1"], "de"),
        (["en", "de"], [""], nil), (["en", "de"], [",, ,"], nil),
        // RFC 4647 §3.4: a range is shortened, a tag is not.
        (["zh-Hant", "zh"], ["zh-Hant-CN-x-private1-private2"], "zh-Hant"), (["zh-Hant", "zh"], ["zh-Hans"], "zh"),
        (["de-AT"], ["de"], nil), (["de-AT", "de"], ["de"], "de"), (["pt-BR", "pt"], ["pt-br"], "pt-BR"),
        (["en"], ["eng, e, english-x"], nil), (["de"], ["de-*"], "de"),
        // RFC 9110 §12.4.2: weights.
        (["en", "de"], ["de;q=0"], nil), (["en", "de"], ["de;q=0.000, en;q=0.001"], "en"),
        (["en", "de"], ["de-AT, de;q=0"], nil), (["de-AT", "de"], ["de-AT, de;q=0"], "de-AT"),
        (["de-AT", "de"], ["de-AT;q=0, de-AT-x"], "de"), (["de"], ["de, de;q=0"], nil),
        (["en", "de"], ["de, *;q=0"], "de"), (["en", "de"], ["de;q=0.5;x=y, en;q=0.1"], "en"),
        (["en", "de"], ["de;q=1.1, en;q=0.1"], "en"), (["en", "de"], ["de;q=, en;q=.5, fr"], nil),
        (["en", "de"], ["en;Q=0.5,de ; q=1.000"], "de"), (["en", "de"], ["en;q=0.5555,de;q=0.556"], "de"),
        // Several lines are one list (RFC 9110 §5.3).
        (["en", "de"], ["en;q=0.1", "x", "de-CH-1996;q=0.2"], "de"), (["en", "de"], ["de", "de"], "de"),
        (["de"], [String(repeating: "fr,", count: 63) + "de"], "de"),
        (["de"], [String(repeating: "fr,", count: 64) + "de"], nil),
    ]

    @Test(arguments: languages)
    func `of the languages the best of the site is kept, and without one the field goes`(
        languages: [String], sent: [String], best: String?
    ) throws {
        let fields = sent.map { "Accept-Language: \($0)" }
        let kept = try Self.normalized(["A: 1"] + fields, by: Self.normalization(languages: languages))
        #expect(kept == ["A: 1"] + (best.map { ["Accept-Language: \($0)"] } ?? []), "\(sent)")
    }

    // MARK: The plain model

    private static func trimmed(_ text: Substring) -> Substring {
        let start = text.drop { $0 == " " || $0 == "\t" }
        return start.lastIndex { $0 != " " && $0 != "\t" }.map { start[...$0] } ?? ""
    }

    /// The cookies that are kept of one line; `nil`: none.
    private static func model(cookies value: String, strips: [String]) -> String? {
        let parts = value.split(separator: ";", omittingEmptySubsequences: false).filter { !trimmed($0).isEmpty }
        let kept = parts.filter { part in
            let name = trimmed(part.prefix { $0 != "=" })
            return !strips.contains { $0.hasSuffix("*") ? name.hasPrefix($0.dropLast()) : name == $0 }
        }
        if kept.isEmpty { return nil }
        if kept.count == parts.count { return value }
        // White space stays before a cookie only.
        let texts = kept.map { part in
            part[..<(part.lastIndex { $0 != " " && $0 != "\t" }.map { part.index(after: $0) } ?? part.endIndex)]
        }
        return String(trimmed(Substring(texts.joined(separator: ";"))))
    }

    /// RFC 4647 §3.4, word for word.
    private static func model(languages values: [String], site: [String]) -> String? {
        var ranges: [(range: String, weight: Double)] = []
        for member in values.joined(separator: ",").split(separator: ",") {
            let parts = member.split(separator: ";", maxSplits: 1, omittingEmptySubsequences: false).map(trimmed)
            guard !parts[0].isEmpty, parts[0] != "*" else { continue }
            if parts.count == 1 {
                ranges.append((parts[0].lowercased(), 1))
            } else if let match = parts[1].wholeMatch(of: /[qQ]=(0(\.[0-9]*)?|1(\.0*)?)/),
                let weight = Double(match.1 == "0." ? "0" : match.1 == "1." ? "1" : match.1)
            {
                ranges.append((parts[0].lowercased(), weight))
            }
        }
        func isBeginning(_ one: String, of other: String) -> Bool { other == one || other.hasPrefix(one + "-") }
        let excluded = site.filter { tag in
            let own = ranges.filter { isBeginning($0.range, of: tag.lowercased()) }
            let longest = own.map(\.range.count).max()
            return own.contains { $0.range.count == longest && $0.weight == 0 }
        }
        let wanted = ranges.enumerated().filter { $1.weight > 0 }
            .sorted { ($1.element.weight, $0.offset) < ($0.element.weight, $1.offset) }
        for (_, entry) in wanted {
            var subtags = entry.range.split(separator: "-", omittingEmptySubsequences: false)
            while !subtags.isEmpty {
                let shortened = subtags.joined(separator: "-")
                if let tag = site.first(where: { $0.lowercased() == shortened && !excluded.contains($0) }) {
                    return tag
                }
                subtags.removeLast()
                while subtags.count > 1, subtags.last?.count == 1 { subtags.removeLast() }
            }
        }
        return nil
    }

    private static func model(_ sent: [Line], strips: [String], site: [String]) -> [String] {
        var languages = sent.filter { $0.name == "Accept-Language" }.map(\.value)
        let best = site.isEmpty ? nil : model(languages: languages, site: site)
        var kept: [String] = []
        for line in sent {
            var value: String? = line.value
            if line.name == "Cookie", !strips.isEmpty { value = model(cookies: line.value, strips: strips) }
            if line.name == "Accept-Language", !site.isEmpty {
                // At its first place in the comparison below.
                value = languages.isEmpty ? nil : best
                languages = []
            }
            if let value { kept.append("\(line.name): \(value)") }
        }
        return kept
    }

    // MARK: Random requests

    private struct Maker {
        var generator: SeededGenerator

        mutating func one<Element>(of elements: [Element]) -> Element {
            elements[Int.random(in: 0..<elements.count, using: &generator)]
        }

        mutating func text(_ pieces: [String], _ most: Int) -> String {
            (0..<Int.random(in: 0...most, using: &generator)).map { _ in one(of: pieces) }.joined()
        }

        mutating func value(_ name: String) -> String {
            let made =
                switch name {
                case "Cookie":
                    text(["_ga", "_gid", "a", "b=", "=", ";", "; ", ";", " ", "\t", "\"", "_ga=1; ", "theme=x;"], 12)
                case "Accept-Language":
                    text(
                        [
                            "de", "-AT", "en", "-x", "fr", ",", ", ", ";q=0", ";q=0.5", ";q=1", ";q=0.55", "*", " ",
                            "zh-Hant",
                        ],
                        12)
                default: text(["x", " ", ";", ","], 4)
                }
            return String(RequestNormalizationTests.trimmed(Substring(made)))
        }
    }

    @Test(arguments: Rounds.seeds(20))
    func `a normalized head is what a plain model says, and is parsed as such`(seed: UInt64) throws {
        var maker = Maker(generator: SeededGenerator(seed: seed))
        for _ in 0..<200 { try compare(&maker) }
    }

    private func compare(_ maker: inout Maker) throws {
        let names = ["Cookie", "Accept-Language", "Accept", "X-A", "Cookie"]
        var sent: [Line] = []
        for _ in 0..<Int.random(in: 0...6, using: &maker.generator) {
            let name = maker.one(of: names)
            sent.append((name, maker.value(name)))
        }
        sent.insert(("Host", "h"), at: Int.random(in: 0...sent.count, using: &maker.generator))
        let strips = maker.one(of: [[], ["_ga"], ["_ga", "_gid"], ["_*"], ["*"]])
        let site = maker.one(of: [[], ["de", "en"], ["de-AT", "fr", "de"], ["zh-Hant", "zh"]])
        guard let normalization = Self.normalization(strips: strips, languages: site) else { return }
        let expected = Self.sortedLanguage(Self.model(sent, strips: strips, site: site))

        var text = "GET /a HTTP/1.1\r\n"
        for line in sent {
            text += "\(line.name):\(maker.one(of: ["", " ", "  "]))\(line.value)\(maker.one(of: ["", " "]))\r\n"
        }
        // Another request follows.
        let message = wire(text + "\r\nGET /next HTTP/1.1\r\nCookie: _ga=1")
        var parser = RequestHeadParser(limits: .roomy)
        _ = try parser.parse(message.span)
        let head = parser.head
        let request = parser.view(in: message.span)
        // Memory that is used again, with the bytes of another head.
        let memory = Chunk(capacity: 4_000)
        memory.write(wire(String(repeating: "Cookie: _ga=1\r\n", count: 200)).span, at: 0)
        guard let block = normalization.head(of: request, length: head.length, reusing: memory) else {
            let lines = Self.lines(of: request)
            #expect(Self.sortedLanguage(lines) == expected, "\(text)")
            return
        }
        let view = block.view
        let lines = Self.lines(of: view)
        #expect(Self.sortedLanguage(lines) == expected, "\(text)")
        #expect(block.bytes.count == head.length)
        var present: FieldSet = []
        for index in 0..<view.lines.count { present.insert(view.lines[index].field) }
        #expect(block.present == present)
        #expect(String(block.bytes[head.target.whole.range]) == "/a")
        #expect(String(block.bytes[head.authority.range]) == "h")

        // The lines that are forwarded, neighbours in one run.
        let buffer = ByteBuffer(capacity: 512)
        buffer.append("GET / HTTP/1.1\r\n")
        buffer.appendFields(view, connection: head.connection)
        buffer.appendLineEnd()
        #expect(try Self.parsed(wire(String(buffer.span))) == lines)

        // A client may send these very bytes.
        let bytes = wire(String(block.bytes))
        var again = RequestHeadParser(limits: .roomy)
        _ = try again.parse(bytes.span)
        let same = normalization.head(of: again.view(in: bytes.span), length: bytes.count)
        let resent = try same.map { Self.lines(of: $0.view) } ?? Self.parsed(bytes)
        #expect(resent == lines, "\(text)")
        if let same { #expect(same.bytes == block.bytes) }
    }

    private static func parsed(_ bytes: [UInt8]) throws -> [String] {
        var parser = RequestHeadParser(limits: .roomy)
        _ = try parser.parse(bytes.span)
        return lines(of: parser.view(in: bytes.span))
    }

    /// The kept language stands in the line that had it, not in the first: which one makes no difference.
    private static func sortedLanguage(_ lines: [String]) -> [String] {
        lines.filter { !$0.hasPrefix("Accept-Language") } + lines.filter { $0.hasPrefix("Accept-Language") }
    }

    @Test func `memory is used again if it is large enough`() throws {
        let normalization = try #require(Self.normalization(strips: ["_ga"]))
        let fields = head("Cookie: _ga=1; a=\(String(repeating: "b", count: 200))\nA: b")
        func normalized(reusing memory: Chunk?) throws -> ByteSlice {
            let block = normalization.head(of: fields.view, length: fields.bytes.count, reusing: memory)
            return try #require(block?.bytes)
        }
        let first = try normalized(reusing: nil), second = try normalized(reusing: first.chunk)
        #expect(second.chunk.isSame(as: first.chunk))
        let third = try normalized(reusing: Chunk(capacity: 100))
        #expect(third == first && !third.chunk.isSame(as: first.chunk))
    }
}
