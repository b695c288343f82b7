import Bytes

/// The cookies of a request, line by line in their order: `name=value` between semicolons (RFC 6265 §4.2.1), without
/// the white space around either. A pair without `=` is a name without a value, as in PHP and Rack. Quotes have no
/// meaning: a semicolon within them separates as well. So quotes hide no cookie: an origin that honours them reads some
/// of these cookies, and no others. The iterator is empty if `Connection` nominates the field, since the origin then
/// does not receive it. Does not allocate.
///
///     var cookies = CookieIterator(fields)
///     while cookies.next() { … cookies.name … cookies.value … }
struct CookieIterator: ~Escapable {
    private var lines: LineIterator
    /// Whether `Connection` nominates `Cookie`: then the origin receives no cookies.
    private let isNominated: Bool
    private var line: Span<UInt8>
    /// The first unread byte of `line`.
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
