public import Bytes

/// Builds the head that is stored, and sent to all clients but the one that led the fetch, from the head that arrived
/// (RFC 9111 §3.1, RFC 9110 §7.6.1).
///
/// All fields are kept byte for byte and in order, except fields for one connection, one proxy or one user. The block's
/// bytes are complete field lines, so they are sent in one piece.
public enum StoredFields {
    /// Fields for one connection or for the next proxy (§3.1). `Trailer` announces trailers, which a stored response
    /// does not have.
    static let connectionFields =
        FieldSet(.connection) | .proxyConnection | .keepAlive | .te | .trailer | .transferEncoding | .upgrade
        | .http2Settings | .proxyAuthenticate | .proxyAuthenticationInfo | .proxyAuthorization

    /// Fields that describe the content of the message that carries them: its range of the representation (RFC 9110
    /// §14.4), and its digest (RFC 9530 §2; `Content-MD5` of RFC 2616, which counts as the same). They do not apply to
    /// a part of that content, nor to a message without content. `Repr-Digest` (RFC 9530 §3), and `Digest` before it
    /// (RFC 3230 §4.3.2: of the instance), describe the whole representation, in a message with any part of it.
    public static let ofContent = FieldSet(.contentRange) | .contentDigest | .contentMD5

    /// - Parameters:
    ///   - facts: computed from the same response.
    ///   - dropping: further fields to omit. `Age` is always omitted: each reuse states its own (§4).
    ///   - isForLeader: for the client that led the fetch, which also gets the fields that qualified directives
    ///     restrict.
    public static func head(
        keeping fields: FieldView, facts: ResponseFacts, policy: CachingPolicy, dropping: FieldSet = [],
        isForLeader: Bool = false
    ) -> HeadBlock {
        let kept = KeptLines(fields, facts: facts, policy: policy, dropping: dropping, isForLeader: isForLeader)
        // An upper bound; it exceeds the size by the omitted lines, mostly none.
        var size = kept.needsDate ? HeadBlockBuilder.dateLineSize : 0
        var count = kept.needsDate ? 1 : 0
        for index in 0..<fields.lines.count where !kept.dropped.contains(fields.lines[index].field) {
            size += HeadBlockBuilder.size(fields, index)
            count += 1
        }
        var builder = HeadBlockBuilder(capacity: size, lines: count)
        for index in 0..<fields.lines.count where kept.contains(index) { builder.append(fields, index) }
        if kept.needsDate { builder.appendDate(facts.date) }
        return builder.finish()
    }

    /// Appends the lines of that head to `buffer`, for a caller that keeps no list of them (`HeadBlock.init(lines:)`
    /// rebuilds it).
    public static func append(
        _ fields: FieldView, facts: ResponseFacts, policy: CachingPolicy, dropping: FieldSet = [],
        isForLeader: Bool = false,
        to buffer: ByteBuffer
    ) {
        let kept = KeptLines(fields, facts: facts, policy: policy, dropping: dropping, isForLeader: isForLeader)
        // A run of adjacent kept lines that are not copied yet: mostly nearly all lines.
        var run = 0..<0
        for index in 0..<fields.lines.count where kept.contains(index) {
            let line = fields.completeLine(at: index)
            if let line, line.lowerBound == run.upperBound {
                run = run.lowerBound..<line.upperBound
                continue
            }
            buffer.append(fields.bytes.extracting(run))
            run = line ?? 0..<0
            guard line == nil else { continue }
            buffer.append(fields.name(at: index))
            buffer.append(": ")
            buffer.append(fields.value(at: index))
            buffer.appendLineEnd()
        }
        buffer.append(fields.bytes.extracting(run))
        guard kept.needsDate else { return }
        buffer.appendName("Date")
        HTTPDate.append(facts.date, to: buffer)
        buffer.appendLineEnd()
    }
}

extension ByteBuffer {
    /// Appends the lines of `fields` that say nothing about the content: for a response whose content is replaced.
    /// Fields whose names begin with `Content-` go, validators (RFC 9110 §8.8), digests, and `Accept-Ranges`.
    public func appendFieldsNotOfContent(_ fields: FieldView, dropping: FieldSet = []) {
        for index in 0..<fields.lines.count where !fields.describesContent(lineAt: index) {
            if dropping.contains(fields.lines[index].field) { continue }
            append(fields.name(at: index))
            append(": ")
            append(fields.value(at: index))
            appendLineEnd()
        }
    }
}

extension FieldView {
    /// `Content-Range` in a 416 tells the length of the representation (RFC 9110 §15.5.17), but goes as well: this
    /// proxy writes it anew where it knows the length.
    fileprivate func describesContent(lineAt index: Int) -> Bool {
        switch lines[index].field {
        case .etag, .lastModified, .acceptRanges: true
        default: name(at: index).hasPrefixIgnoringCase("content-") || Self.isDigest(name(at: index))
        }
    }

    /// RFC 9530 §3, RFC 3230.
    private static func isDigest(_ name: Span<UInt8>) -> Bool {
        name.isEqualIgnoringCase(to: "repr-digest") || name.isEqualIgnoringCase(to: "digest")
    }
}

/// Decides which lines of a head are kept.
private struct KeptLines: ~Copyable, ~Escapable {
    /// Fields that are omitted regardless of their value.
    let dropped: FieldSet
    /// RFC 9110 §6.6.1: a recipient with a clock adds a missing `Date`.
    let needsDate: Bool
    private let fields: FieldView
    private let excluded: ExcludedFields
    /// Whether the message names further fields to omit, by `Connection` or a qualified directive; mostly false.
    private let namesOthers: Bool

    @_lifetime(copy fields)
    init(
        _ fields: FieldView, facts: ResponseFacts, policy: borrowing CachingPolicy, dropping: FieldSet,
        isForLeader: Bool
    ) {
        dropped = StoredFields.connectionFields.union(dropping).union(FieldSet(.age))
        needsDate = !fields.contains(.date)
        self.fields = fields
        excluded = ExcludedFields(
            fields, isTargeted: facts.contains(.isTargeted), policy: policy,
            isNeeded: !isForLeader && facts.contains(.excludesFields))
        namesOthers = fields.contains(.connection) || !excluded.isEmpty
    }

    /// Whether the line at `index` is kept.
    @inline(__always)
    func contains(_ index: Int) -> Bool {
        !dropped.contains(fields.lines[index].field)
            && (!namesOthers || !fields.isNominated(lineAt: index) && !excluded.contains(fields.name(at: index)))
    }
}

/// The fields that qualified `private` and `no-cache` directives name (RFC 9111 §5.2.2.4, §5.2.2.7), as far as they
/// count as qualified: `ResponseDirectives` has the same bound.
struct ExcludedFields {
    private var lists: [ByteSlice] = []
    var isEmpty: Bool { lists.isEmpty }

    init(_ fields: FieldView, facts: ResponseFacts, policy: borrowing CachingPolicy) {
        self.init(
            fields, isTargeted: facts.contains(.isTargeted), policy: policy, isNeeded: facts.contains(.excludesFields))
    }

    init(_ fields: FieldView, isTargeted: Bool, policy: borrowing CachingPolicy, isNeeded: Bool = true) {
        guard isNeeded else { return }
        if isTargeted {
            lists = TargetedCacheControl.fieldLists(in: fields, targets: policy.targetedFields)
            return
        }
        var (directives, bound) = (DirectiveIterator(fields, .cacheControl), FieldNameBound())
        while let directive = directives.next() {
            let name = directive.name
            guard name.isEqualIgnoringCase(to: "private") || name.isEqualIgnoringCase(to: "no-cache") else { continue }
            guard bound.takes(directive.argument) else { return }
            lists.append(ByteSlice(copying: directive.argument))
        }
    }

    func contains(_ name: Span<UInt8>) -> Bool {
        for list in lists {
            var members = MemberIterator(list.span)
            while let member = members.next() {
                if member.isEqualIgnoringCase(to: name) { return true }
            }
        }
        return false
    }
}
