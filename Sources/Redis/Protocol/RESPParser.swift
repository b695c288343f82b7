package import Bytes

/// Reads the values that the engine sends out of bytes that arrive in pieces of any size. A value without I/O.
///
/// ```
/// line ─a value without a text behind it; the head of a list→ line
///  └─the length of a text→ text ─its bytes and CR LF→ line
/// any ─bad byte→ failed
/// ```
///
/// A value is returned once it is whole. No byte is searched twice: the bytes of a long text go into memory of their
/// own as they come, and the search in an unfinished line goes on where it stopped. Attributes are read and dropped.
package struct RESPParser: ~Copyable {
    private enum State {
        case line
        case text
        case failed(RESPSyntaxError)
    }

    private enum TextKind { case bulk, error, verbatim }

    /// A text of known length that is arriving.
    private struct Text {
        let kind: TextKind
        let chunk: Chunk
        var count = 0
    }

    private enum ListKind { case array, set, map, push, attribute }

    /// A list whose values are arriving.
    private struct List {
        let kind: ListKind
        /// Of a map, its keys and its values.
        let count: Int
        var values: [RESPValue] = []

        var value: RESPValue? {
            switch kind {
            case .array: .array(values)
            case .set: .set(values)
            case .map: .map(values)
            case .push: .push(values)
            case .attribute: nil
            }
        }
    }

    private enum Step {
        case needMore, goOn
        case value(RESPValue)
    }

    private let limits: RESPLimits
    private var state = State.line
    private var text = Text(kind: .bulk, chunk: ByteSlice.empty.chunk)
    /// The outermost list first.
    private var lists: [List] = []
    /// The bytes of the unfinished line that were searched for its end.
    private var searched = 0
    /// Bytes consumed since the connection began.
    private var passed = 0
    /// The bytes of the texts, and the number of values, that the present value has so far.
    private var (bytes, elements) = (0, 0)

    /// A parser for the bytes of one connection.
    package init(limits: RESPLimits = RESPLimits()) { self.limits = limits }

    /// Consumes bytes of `input` up to the end of the next value, or all that are of use.
    /// - Returns: `nil`: more bytes are needed.
    /// - Throws: the first error, with its position; the same again at each further call.
    package mutating func next(in input: ByteBuffer) throws(RESPSyntaxError) -> RESPValue? {
        do throws(RESPSyntaxError) {
            while true {
                switch try step(input) {
                case .needMore: return nil
                case .goOn: break
                case .value(let value): return value
                }
            }
        } catch {
            state = .failed(error)
            throw error
        }
    }

    private mutating func step(_ input: ByteBuffer) throws(RESPSyntaxError) -> Step {
        switch state {
        case .line: try takeLine(input)
        case .text: try takeText(input)
        case .failed(let error): throw error
        }
    }

    private mutating func consume(_ count: Int, of input: ByteBuffer) {
        input.consume(count)
        passed += count
    }

    // MARK: Lines

    private mutating func takeLine(_ input: ByteBuffer) throws(RESPSyntaxError) -> Step {
        guard !input.isEmpty else { return .needMore }
        let line = input.span
        let type = line[0]
        if searched == 0, !Self.isType(type) { throw error(.unknownType(type)) }
        guard let end = line.firstIndex(of: 0x0a, from: max(1, searched)), end < limits.mostLine else {
            guard line.count < limits.mostLine else {
                throw error(.lineTooLong(most: limits.mostLine), after: limits.mostLine)
            }
            searched = line.count
            return .needMore
        }
        guard end >= 2, line[end - 1] == 0x0d, line.firstIndex(of: 0x0d) == end - 1 else {
            throw error(.lineBreakInvalid, after: end)
        }
        let step = try read(line.extracting(1..<end - 1), of: type)
        searched = 0
        consume(end + 1, of: input)
        return step
    }

    private static func isType(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: ":"), UInt8(ascii: "$"), UInt8(ascii: "*"),
            UInt8(ascii: "_"), UInt8(ascii: "#"), UInt8(ascii: ","), UInt8(ascii: "("), UInt8(ascii: "!"),
            UInt8(ascii: "="), UInt8(ascii: "%"), UInt8(ascii: "~"), UInt8(ascii: "|"), UInt8(ascii: ">"):
            true
        default: false
        }
    }

    private mutating func read(_ line: Span<UInt8>, of type: UInt8) throws(RESPSyntaxError) -> Step {
        switch type {
        case UInt8(ascii: "+"): return complete(.simple(try copy(line)))
        case UInt8(ascii: "-"): return complete(.error(try copy(line)))
        case UInt8(ascii: ":"):
            guard let number = line.wholeNumber else { throw error(.numberInvalid, after: 1) }
            return complete(.integer(number))
        case UInt8(ascii: ","):
            guard line.isDouble else { throw error(.numberInvalid, after: 1) }
            return complete(.double(try copy(line)))
        case UInt8(ascii: "("):
            guard line.isWholeNumber else { throw error(.numberInvalid, after: 1) }
            return complete(.bigNumber(try copy(line)))
        case UInt8(ascii: "#"):
            guard line.isEqual(to: "t") || line.isEqual(to: "f") else { throw error(.booleanInvalid, after: 1) }
            return complete(.boolean(line[0] == UInt8(ascii: "t")))
        case UInt8(ascii: "_"):
            guard line.isEmpty else { throw error(.nullInvalid, after: 1) }
            return complete(.null)
        case UInt8(ascii: "$"):
            // RESP2's null, which an engine sends before it has answered HELLO.
            if line.isEqual(to: "-1") { return complete(.null) }
            return try begin(.bulk, line)
        case UInt8(ascii: "!"): return try begin(.error, line)
        case UInt8(ascii: "="): return try begin(.verbatim, line)
        case UInt8(ascii: "*"):
            if line.isEqual(to: "-1") { return complete(.null) }
            return try begin(.array, line)
        case UInt8(ascii: "~"): return try begin(.set, line)
        case UInt8(ascii: "%"): return try begin(.map, line)
        case UInt8(ascii: "|"): return try begin(.attribute, line)
        case UInt8(ascii: ">"):
            guard lists.isEmpty else { throw error(.pushInside) }
            return try begin(.push, line)
        default: throw error(.unknownType(type))
        }
    }

    private func error(_ reason: RESPSyntaxError.Reason, after count: Int = 0) -> RESPSyntaxError {
        RESPSyntaxError(reason, at: passed + count)
    }

    private func length(_ line: Span<UInt8>, most: Int, _ excess: RESPSyntaxError.Reason) throws(RESPSyntaxError) -> Int
    {
        guard !line.isEqual(to: "?") else { throw error(.streamed, after: 1) }
        guard !line.isEmpty, line.isDigits(from: 0) else { throw error(.lengthInvalid, after: 1) }
        // A number that does not fit is beyond every bound.
        guard let number = line.wholeNumber, number <= most else { throw error(excess, after: 1) }
        return Int(number)
    }

    private mutating func copy(_ line: Span<UInt8>) throws(RESPSyntaxError) -> ByteSlice {
        guard line.count <= limits.mostBytes - bytes else {
            throw error(.tooManyBytes(most: limits.mostBytes), after: 1)
        }
        bytes += line.count
        return line.isEmpty ? .empty : ByteSlice(copying: line)
    }

    // MARK: Texts

    private mutating func begin(_ kind: TextKind, _ line: Span<UInt8>) throws(RESPSyntaxError) -> Step {
        let length = try length(line, most: limits.mostBytes - bytes, .tooManyBytes(most: limits.mostBytes))
        guard kind != .verbatim || length >= 4 else { throw error(.formatMissing, after: 1) }
        bytes += length
        // The kernel gives the memory of a long text as its bytes come.
        text = Text(kind: kind, chunk: length == 0 ? ByteSlice.empty.chunk : Chunk(capacity: length))
        state = .text
        return .goOn
    }

    private mutating func takeText(_ input: ByteBuffer) throws(RESPSyntaxError) -> Step {
        let missing = text.chunk.capacity - text.count
        let taken = min(missing, input.count)
        if taken > 0 {
            text.chunk.write(input.span.extracting(first: taken), at: text.count)
            text.count += taken
            consume(taken, of: input)
        }
        guard taken == missing else { return .needMore }
        let rest = input.span
        if rest.count > 0, rest[0] != 0x0d { throw error(.textEndMissing) }
        guard rest.count > 1 else { return .needMore }
        if rest[1] != 0x0a { throw error(.textEndMissing, after: 1) }
        let slice = ByteSlice(text.chunk, 0..<text.count)
        if text.kind == .verbatim, slice.span[3] != UInt8(ascii: ":") {
            throw RESPSyntaxError(.formatMissing, at: passed - text.count)
        }
        consume(2, of: input)
        state = .line
        switch text.kind {
        case .bulk: return complete(.bulk(slice))
        case .error: return complete(.error(slice))
        case .verbatim: return complete(.verbatim(slice[4..<slice.count]))
        }
    }

    // MARK: Lists

    private mutating func begin(_ kind: ListKind, _ line: Span<UInt8>) throws(RESPSyntaxError) -> Step {
        let most = limits.mostElements - elements
        let inPairs = kind == .map || kind == .attribute
        let length = try length(
            line, most: inPairs ? most / 2 : most, .tooManyElements(most: limits.mostElements))
        let count = inPairs ? 2 * length : length
        // An attribute counts itself: no list counts it, so that there could be any number of empty ones.
        elements += kind == .attribute ? count + 1 : count
        guard elements <= limits.mostElements else {
            throw error(.tooManyElements(most: limits.mostElements), after: 1)
        }
        guard lists.count < limits.mostDepth else { throw error(.tooDeep(most: limits.mostDepth)) }
        let list = List(kind: kind, count: count)
        if count > 0 {
            lists.append(list)
            return .goOn
        }
        return list.value.map { complete($0) } ?? .goOn
    }

    /// Puts a whole value into the list that it belongs to, which may be whole then too.
    private mutating func complete(_ value: RESPValue) -> Step {
        var value = value
        while let last = lists.indices.last {
            lists[last].values.append(value)
            guard lists[last].values.count == lists[last].count else { return .goOn }
            guard let whole = lists.removeLast().value else { return .goOn }
            value = whole
        }
        (bytes, elements) = (0, 0)
        return .value(value)
    }
}

extension Span where Element == UInt8 {
    /// Whether all bytes from `start` on are digits.
    fileprivate func isDigits(from start: Int) -> Bool {
        for index in start..<count where self[index] &- 0x30 > 9 { return false }
        return true
    }

    private var hasSign: Bool { count > 0 && (self[0] == UInt8(ascii: "-") || self[0] == UInt8(ascii: "+")) }

    /// Whether the bytes are digits, at least one, perhaps with a sign.
    fileprivate var isWholeNumber: Bool {
        let start = hasSign ? 1 : 0
        return count > start && isDigits(from: start)
    }

    /// The number that the bytes write in decimal digits; `nil` if they write none, or if it has more than 64 bits.
    var wholeNumber: Int64? {
        guard isWholeNumber else { return nil }
        let isNegative = self[0] == UInt8(ascii: "-")
        var number: Int64 = 0
        for index in (hasSign ? 1 : 0)..<count {
            let digit = Int64(self[index] &- 0x30)
            let (shifted, overflow) = number.multipliedReportingOverflow(by: 10)
            // Negative, as -2^63 has no positive counterpart.
            let (next, underflow) = shifted.subtractingReportingOverflow(digit)
            guard !overflow, !underflow else { return nil }
            number = next
        }
        if isNegative { return number }
        return number == .min ? nil : -number
    }

    /// Whether the bytes write a number, perhaps with a fraction and an exponent, or `inf`, `nan`.
    fileprivate var isDouble: Bool {
        var index = hasSign ? 1 : 0
        let unsigned = extracting(index..<count)
        if unsigned.isEqual(to: "inf") || unsigned.isEqual(to: "nan") { return true }
        let whole = digits(from: &index)
        guard whole > 0 else { return false }
        if index < count, self[index] == UInt8(ascii: ".") {
            index += 1
            if digits(from: &index) == 0 { return false }
        }
        if index < count, self[index] | 0x20 == UInt8(ascii: "e") {
            index += 1
            if index < count, self[index] == UInt8(ascii: "-") || self[index] == UInt8(ascii: "+") { index += 1 }
            if digits(from: &index) == 0 { return false }
        }
        return index == count
    }

    /// Passes the digits at `index`.
    /// - Returns: how many they are.
    private func digits(from index: inout Int) -> Int {
        let start = index
        while index < count, self[index] &- 0x30 <= 9 { index += 1 }
        return index - start
    }
}
