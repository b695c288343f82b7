import Bytes

/// The content codings of a response (RFC 9110 §8.4): a client must be able to decode all of them to read the content.
///
/// Names in lower case, in the order in which they were applied, with commas between. `identity` is omitted; `x-gzip`
/// and `x-compress` become `gzip` and `compress` (§8.4.1).
struct ContentCodings: Sendable, Equatable {
    let names: ByteSlice

    /// Responses in practice have no more codings and no longer names. Each name is searched in each request.
    static let most = 4
    static let longest = 32

    /// The content codings of a response, classified.
    enum Scope {
        /// None that a client would have to decode.
        case none
        /// Codings that a request may accept.
        case codings
        /// More codings, or longer names, than requests are searched for.
        case tooMuch
    }

    /// Classifies `Content-Encoding` of the response with `fields`.
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

    /// The codings of the response with `fields`, for which `scope` is `codings`.
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

    /// Whether a client that sent `request` can decode these codings: its `Accept-Encoding` accepts each of them
    /// (§12.5.3). False without the field: RFC 9110 then permits any coding, but clients that do not send the field
    /// mostly decode none. Does not allocate.
    func areAccepted(by request: FieldView) -> Bool {
        var codings = MemberIterator(names.span)
        while let coding = codings.next() {
            if !Self.isAccepted(coding, by: request) { return false }
        }
        return true
    }

    /// A weight of 0 or an invalid weight refuses a coding. `*` covers the codings that are not listed.
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
