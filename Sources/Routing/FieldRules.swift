public import Bytes
public import HTTPSemantics

/// The rules for the fields of one kind of message on one route, one rule for each name. Each is what the top of the
/// configuration and then the route say of that name. Made once, with the settings; immutable.
///
/// A rule takes all lines of its name away, or leaves them, and appends its own lines. A line with a constant value is
/// prepared as a whole; another one is written for each message.
public final class FieldRules: Sendable {
    fileprivate struct Rule: Sendable {
        let name: ByteSlice
        let field: KnownField
        /// Whether the received lines of this name are removed.
        var replaces = false
        var lines: [Line] = []
        /// Whether the field states how long, or whether, a response may be kept.
        let isOnCaching: Bool
    }

    fileprivate enum Line: Sendable {
        /// A complete line with its CRLF.
        case constant(ByteSlice)
        /// `Name: `, and the value.
        case variable(ByteSlice, Template)
    }

    private let rules: [Rule]
    /// Whether lines with aliases of a name count as lines of that name: some origins read them so.
    private let countsAliases: Bool
    /// Whether a line has the request's identifier.
    public let usesRequestID: Bool

    fileprivate init?(_ rules: [Rule], countsAliases: Bool = false) {
        guard !rules.isEmpty else { return nil }
        self.rules = rules
        self.countsAliases = countsAliases
        usesRequestID = rules.contains { $0.lines.contains { $0.uses(.requestID) } }
    }

    // MARK: Applying them

    /// Changes the fields of a message.
    /// - Parameters:
    ///   - start: where the head begins that is at the end of `buffer`, with its first line and its empty line.
    ///   - omitted: fields that the rules leave alone: those that the message may not have, and those that this proxy
    ///     states of its own content.
    ///   - leavesCaching: whether the rules leave the fields alone that tell caches what to keep.
    public func apply(
        toHeadFrom start: Int, in buffer: ByteBuffer, _ parts: borrowing RequestParts, omitting omitted: FieldSet = [],
        leavesCaching: Bool = false
    ) {
        let lines = open(headFrom: start, in: buffer)
        // A failure that a cache downstream keeps for as long as the page would outlive its cause.
        let isError = leavesCaching || parts.status.code >= 400
        // All lines are removed first: a name may be an alias of another rule's.
        for rule in rules where rule.replaces && !(isError && rule.isOnCaching) && !omitted.contains(rule.field) {
            remove(rule, from: lines, in: buffer)
        }
        for rule in rules where !(isError && rule.isOnCaching) && !omitted.contains(rule.field) {
            for line in rule.lines {
                switch line {
                case .constant(let line): buffer.append(line)
                case .variable(let name, let value):
                    buffer.append(name)
                    value.write(parts, to: buffer)
                    buffer.appendLineEnd()
                }
            }
        }
        buffer.appendLineEnd()
    }

    /// Changes the fields of a message as `apply(toHeadFrom:)` does, by rules that have no variables.
    public func applyConstants(
        toHeadFrom start: Int, in buffer: ByteBuffer, status: Status, omitting omitted: FieldSet = []
    ) {
        // None of these rules is about caching: those are written per response.
        let lines = open(headFrom: start, in: buffer)
        apply(toLinesFrom: lines, in: buffer, of: status, omitting: omitted)
        buffer.appendLineEnd()
    }

    /// Removes the empty line of a head.
    /// - Returns: where its first field begins.
    private func open(headFrom start: Int, in buffer: ByteBuffer) -> Int {
        buffer.truncate(to: buffer.count - 2)
        return (buffer.span.firstIndex(of: UInt8(ascii: "\n"), from: start) ?? start - 1) + 1
    }

    /// Changes the lines from `start` to the end of `buffer`, by rules that have no variables.
    /// - Parameters:
    ///   - status: of the response. A 304 gets no line of a field that it omits.
    ///   - omitted: further fields that the rules leave alone.
    public func apply(toLinesFrom start: Int, in buffer: ByteBuffer, of status: Status, omitting omitted: FieldSet = [])
    {
        let (isError, omitted) = (status.code >= 400, omitted.union(.omitted(from: status)))
        for rule in rules where !(isError && rule.isOnCaching) && !omitted.contains(rule.field) {
            if rule.replaces { remove(rule, from: start, in: buffer) }
            append(rule, to: buffer)
        }
    }

    /// The head of a response that arrived, after the rules, which have no variables.
    /// - Parameter head: complete lines.
    func applied(to head: HeadBlock, of status: Status) -> HeadBlock {
        let buffer = ByteBuffer(capacity: head.bytes.count + 256)
        buffer.append(head.bytes)
        apply(toLinesFrom: 0, in: buffer, of: status)
        return HeadBlock(lines: buffer.copied())
    }

    /// The stored head after another response has changed it, such as a 304. A line that a rule adds beside others is
    /// there since the head was stored, unless `update` has lines of that name, which then took its place.
    func applied(to head: HeadBlock, updatedBy update: FieldView) -> HeadBlock {
        let buffer = ByteBuffer(capacity: head.bytes.count + 256)
        buffer.append(head.bytes)
        for rule in rules {
            if rule.replaces { remove(rule, from: 0, in: buffer) }
            let name = rule.name
            if rule.replaces || update.firstIndex(named: name.span) != nil { append(rule, to: buffer) }
        }
        return HeadBlock(lines: buffer.copied())
    }

    /// The trailers that the rules do not take away: a recipient may merge trailers into the head (RFC 9110 §6.5.1).
    /// - Parameter trailers: complete lines.
    /// - Returns: `nil` if none are left.
    public func remaining(of trailers: ByteSlice) -> ByteSlice? {
        let buffer = ByteBuffer(capacity: trailers.count)
        buffer.append(trailers)
        for rule in rules where rule.replaces { remove(rule, from: 0, in: buffer) }
        return buffer.isEmpty ? nil : buffer.copied()
    }

    private func append(_ rule: Rule, to buffer: ByteBuffer) {
        for case .constant(let line) in rule.lines { buffer.append(line) }
    }

    private func remove(_ rule: Rule, from start: Int, in buffer: ByteBuffer) {
        let name = rule.name
        var line = start
        while let (nameEnd, end) = Self.bounds(ofLineAt: line, in: buffer.span) {
            let other = buffer.span.extracting(line..<nameEnd)
            if other.isEqualIgnoringCase(to: name.span) || countsAliases && other.isAlias(of: name.span) {
                buffer.remove(line..<end)
            } else {
                line = end
            }
        }
    }

    private static func bounds(ofLineAt start: Int, in bytes: Span<UInt8>) -> (nameEnd: Int, end: Int)? {
        guard let nameEnd = bytes.firstIndex(of: UInt8(ascii: ":"), from: start),
            let end = bytes.firstIndex(of: UInt8(ascii: "\n"), from: nameEnd)
        else { return nil }
        return (nameEnd, end + 1)
    }
}

extension FieldSet {
    /// The fields that a response with this status does not get from this proxy.
    public static func omitted(from status: Status) -> FieldSet {
        status == .notModified ? .omittedFromNotModified : []
    }
}

extension FieldRules.Line {
    func uses(_ variable: Template.Variable) -> Bool {
        if case .variable(_, let value) = self { value.uses(variable) } else { false }
    }

    var isConstant: Bool { if case .constant = self { true } else { false } }

    init(_ line: FieldChanges.Line) {
        guard line.value.isConstant else {
            self = .variable(ByteSlice("\(line.name): "), line.value)
            return
        }
        self = .constant(ByteSlice("\(line.name): \(line.value.text)\r\n"))
    }
}

// MARK: Making them

/// The rules of a route by the step in which they act.
struct RouteFields {
    /// For requests to the origin.
    var requests: FieldRules?
    /// For responses when they arrive: part of the stored head.
    var stored: FieldRules?
    /// For responses when they are sent: lines with variables, and the fields that this cache reads in a stored head.
    var sent: FieldRules?
    /// The request fields that the origin does not get as the client sent them.
    var written: [CachingPolicy.WrittenField] = []

    /// - Parameter route: `nil`: the rules for responses to requests without a route, which have no variables.
    init(_ route: RouteSettings?, _ proxy: ProxySettings) {
        let responses = Self.merged(proxy.responseFields, route?.responseFields, proxy)
        guard let route else {
            stored = FieldRules(responses.filter { $0.lines.allSatisfy(\.isConstant) })
            return
        }
        // Last, so that no other rule lets a client name a subject.
        var own = FieldChanges()
        if let name = proxy.tls.clientSubjectField { own.remove = [name] }
        let requests = Self.merged(proxy.requestFields, route.requestFields, proxy, last: own)
        self.requests = FieldRules(requests, countsAliases: proxy.forwarding.sendsOddNames)
        written = requests.compactMap(\.written)
        stored = FieldRules(responses.filter { $0.mayBeStored })
        sent = FieldRules(responses.filter { !$0.mayBeStored })
    }

    /// One rule for each name: the changes of the top, then the changes of the route, then those of this program.
    private static func merged(
        _ top: FieldChanges, _ route: FieldChanges?, _ proxy: ProxySettings, last: FieldChanges = FieldChanges()
    ) -> [FieldRules.Rule] {
        var (rules, places) = ([FieldRules.Rule](), [String: Int]())
        func change(_ name: String, _ change: (inout FieldRules.Rule) -> Void) {
            let key = name.lowercased()
            let place = places[key] ?? rules.count
            if place == rules.count {
                rules.append(FieldRules.Rule(name, targeted: proxy.caching.policy.targetedFields))
                places[key] = place
            }
            change(&rules[place])
        }
        for changes in [top, route ?? FieldChanges(), last] {
            for name in changes.remove { change(name) { ($0.replaces, $0.lines) = (true, []) } }
            for line in changes.set { change(line.name) { ($0.replaces, $0.lines) = (true, [.init(line)]) } }
            for line in changes.add { change(line.name) { $0.lines.append(.init(line)) } }
        }
        return rules
    }
}

extension FieldRules.Rule {
    fileprivate init(_ name: String, targeted: [ByteSlice]) {
        let (name, known) = (ByteSlice(name), KnownField.recognise(ByteSlice(name).span))
        self.name = name
        field = known
        isOnCaching =
            known == .cacheControl || known == .expires || known == .pragma
            || targeted.contains { $0.span.isEqualIgnoringCase(to: name.span) }
    }

    /// Known fields that no rule of the cache reads in a stored head.
    private static let plain =
        FieldSet(.server) | .contentType | .contentLanguage | .location | .contentLocation | .retryAfter | .warning

    /// Whether the rule may act before the response is stored. After a 304 the cache computes the properties of the
    /// response from the stored head, and the origin must have the last word on them.
    fileprivate var mayBeStored: Bool {
        lines.allSatisfy(\.isConstant) && !isOnCaching && (field == .other || Self.plain.contains(field))
    }

    /// The effect of the rule on a request field; `nil` if the origin gets the client's lines, and perhaps lines that
    /// are the same for all beside them.
    fileprivate var written: CachingPolicy.WrittenField? {
        let isPersonal = lines.contains { $0.uses(.client) || $0.uses(.requestID) }
        guard replaces || isPersonal else { return nil }
        return CachingPolicy.WrittenField(name: name, isSameForAll: !isPersonal)
    }
}
