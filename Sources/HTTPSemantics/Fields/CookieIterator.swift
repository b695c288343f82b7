import Bytes

/// The cookies of a request, line by line in their order: `name=value` between semicolons (RFC 6265 §4.2.1), without
/// the white space around either. What has no `=` is a name without a value, as PHP and Rack take it. Quotes do not
/// count: a semicolon within them separates as well. None where `Connection` names the field, since the origin does not
/// see it then. Allocates nothing.
///
///     var cookies = CookieIterator(fields)
///     while cookies.next() { … cookies.name … cookies.value … }
struct CookieIterator: ~Escapable {
    private var lines: LineIterator
    /// Whether `Connection` names `Cookie`: then the origin gets none.
    private let isNominated: Bool
    private var line: Span<UInt8>
    /// The first byte of `line` that was not looked at.
    private var position = 0
    /// The current cookie's name and value.
    private(set) var name: Span<UInt8>
    private(set) var value: Span<UInt8>

    @_lifetime(copy fields)
    init(_ fields: FieldView) {
        lines = LineIterator(fields, .cookie)
        line = fields.bytes.extracting(0..<0)
        name = line
        value = line
        isNominated = fields.firstIndex(of: .cookie).map { fields.isNominated(lineAt: $0) } ?? false
    }

    /// Moves to the next cookie.
    /// - Returns: false after the last.
    @_lifetime(self: copy self)
    mutating func next() -> Bool {
        while true {
            while position < line.count {
                let end = line.firstIndex(of: UInt8(ascii: ";"), from: position) ?? line.count
                let pair = line.extracting(position..<end).trimmingOptionalWhitespace()
                position = end + 1
                if pair.isEmpty { continue }
                let equals = pair.firstIndex(of: UInt8(ascii: "=")) ?? pair.count
                name = pair.extracting(0..<equals).trimmingOptionalWhitespace()
                value = pair.extracting(min(equals + 1, pair.count)...)
                return true
            }
            guard !isNominated, let next = lines.next() else { return false }
            line = next
            position = 0
        }
    }
}
