import Bytes

/// The content codings of a response (RFC 9110 §8.4): what a client must be able to undo before it can read the content.
///
/// Names in lower case, in the order in which they were applied, commas between. `identity` is none; `x-gzip` and
/// `x-compress` are `gzip` and `compress` (§8.4.1).
struct ContentCodings: Sendable, Equatable {
    let names: ByteSlice

    /// More of them, or longer ones, are in no use. Each is looked for in each request.
    static let most = 4
    static let longest = 32

    /// What a response says of its coding.
    enum Scope {
        /// Nothing that a client would have to undo.
        case none
        /// Codings that a request may accept.
        case codings
        /// More than is looked for in requests.
        case tooMuch
    }

    /// What `Content-Encoding` of the response with `fields` comes to.
    static func scope(_ fields: FieldView) -> Scope {
        guard fields.contains(.contentEncoding) else { return .none }
        var count = 0
        var members = ListIterator(fields, .contentEncoding)
        while let member = members.next() {
            if member.isEqualIgnoringCase(to: "identity") { continue }
            count += 1
            if count > most || member.count > longest { return .tooMuch }
        }
        return count == 0 ? .none : .codings
    }

    /// The codings of the response with `fields`, of which `scope` says that there are some.
    init(_ fields: FieldView) {
        let buffer = ByteBuffer(capacity: 16)
        var members = ListIterator(fields, .contentEncoding)
        while let member = members.next() {
            if member.isEqualIgnoringCase(to: "identity") { continue }
            if !buffer.isEmpty { buffer.append(UInt8(ascii: ",")) }
            buffer.append(lowercasing: Self.withoutPrefix(member))
        }
        names = buffer.copied()
    }

    /// Whether a client that sent `request` can read what has these codings: its `Accept-Encoding` accepts each of them
    /// (§12.5.3). Without the field RFC 9110 has any coding be acceptable; but clients that do not send it mostly undo
    /// none. Allocates nothing.
    func areAccepted(by request: FieldView) -> Bool {
        var codings = MemberIterator(names.span)
        while let coding = codings.next() {
            if !Self.isAccepted(coding, by: request) { return false }
        }
        return true
    }

    /// A weight of 0 refuses, and so does what is no weight. `*` accepts what is not named itself.
    private static func isAccepted(_ coding: Span<UInt8>, by request: FieldView) -> Bool {
        var (isNamed, accepts, anyAccepts) = (false, true, false)
        var members = ListIterator(request, .acceptEncoding)
        while let member = members.next() {
            let end = member.firstIndex(of: UInt8(ascii: ";")) ?? member.count
            let name = withoutPrefix(member.extracting(0..<end).trimmingOptionalWhitespace())
            let isStar = name.isEqual(to: "*")
            guard isStar || name.isEqualIgnoringCase(to: coding) else { continue }
            let isWelcome = end == member.count || CodingSet.isZero(member.extracting((end + 1)...)) == false
            if isStar {
                anyAccepts = isWelcome
            } else {
                isNamed = true
                accepts = accepts && isWelcome
            }
        }
        return isNamed ? accepts : anyAccepts
    }

    @_lifetime(copy name)
    private static func withoutPrefix(_ name: Span<UInt8>) -> Span<UInt8> {
        name.isEqualIgnoringCase(to: "x-gzip") || name.isEqualIgnoringCase(to: "x-compress")
            ? name.extracting(2...) : name
    }
}
