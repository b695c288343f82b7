import CYAML

/// Reads a YAML text with libyaml, one event after another.
///
/// Every `unsafe` of this target is in this file. `init` allocates `parser` and `deinit` frees it, so libyaml finds the
/// parser at one address all the time. The parser reads `text`, a copy of the input with the same lifetime. The strings
/// of an event are copied before `yaml_event_delete` frees them.
@safe final class Events {
    enum Event {
        case streamStart, streamEnd, documentStart, documentEnd
        case alias(String)
        case scalar(String, isPlain: Bool, anchor: String?)
        case listStart(anchor: String?)
        case listEnd
        case mappingStart(anchor: String?)
        case mappingEnd
    }

    private let parser: UnsafeMutablePointer<yaml_parser_t>
    private let text: UnsafeMutableBufferPointer<UInt8>

    /// - Throws: an error if no memory is left.
    init(of string: String) throws(ParseError) {
        let bytes = Array(string.utf8)
        unsafe text = .allocate(capacity: bytes.count)
        _ = unsafe text.initialize(fromContentsOf: bytes)
        unsafe parser = .allocate(capacity: 1)
        // `yaml_parser_initialize` sets all fields of the parser, even if it fails.
        guard unsafe yaml_parser_initialize(parser) == 1 else {
            throw ParseError("no memory is left", at: Mark(line: 1, column: 1))
        }
        unsafe yaml_parser_set_encoding(parser, YAML_UTF8_ENCODING)
        unsafe yaml_parser_set_input_string(parser, text.baseAddress, text.count)
    }

    deinit {
        unsafe yaml_parser_delete(parser)
        unsafe parser.deallocate()
        unsafe text.deallocate()
    }

    /// The next event, and where it begins in the text.
    func next() throws(ParseError) -> (Event, Mark) {
        var event = unsafe yaml_event_t()
        guard unsafe yaml_parser_parse(parser, &event) == 1 else { throw error }
        defer { unsafe yaml_event_delete(&event) }
        return unsafe (Self.copy(event), Mark(event.start_mark))
    }

    /// libyaml fills in the union member that belongs to the event's type, and ends its strings with a zero byte.
    private static func copy(_ event: yaml_event_t) -> Event {
        switch unsafe event.type {
        case YAML_STREAM_START_EVENT: return .streamStart
        case YAML_DOCUMENT_START_EVENT: return .documentStart
        case YAML_DOCUMENT_END_EVENT: return .documentEnd
        case YAML_ALIAS_EVENT: return unsafe .alias(string(event.data.alias.anchor) ?? "")
        case YAML_SCALAR_EVENT:
            let scalar = unsafe event.data.scalar
            let bytes = unsafe UnsafeBufferPointer(start: scalar.value, count: scalar.length)
            return unsafe .scalar(
                String(decoding: bytes, as: UTF8.self), isPlain: scalar.style == YAML_PLAIN_SCALAR_STYLE,
                anchor: string(scalar.anchor))
        case YAML_SEQUENCE_START_EVENT: return unsafe .listStart(anchor: string(event.data.sequence_start.anchor))
        case YAML_SEQUENCE_END_EVENT: return .listEnd
        case YAML_MAPPING_START_EVENT: return unsafe .mappingStart(anchor: string(event.data.mapping_start.anchor))
        case YAML_MAPPING_END_EVENT: return .mappingEnd
        default: return .streamEnd
        }
    }

    private static func string(_ characters: UnsafeMutablePointer<yaml_char_t>?) -> String? {
        unsafe characters.map { unsafe String(cString: $0) }
    }

    /// The last failure, in libyaml's words. libyaml's message texts are constants.
    private var error: ParseError {
        let problem = unsafe parser.pointee.problem.map { unsafe String(cString: $0) } ?? "no memory is left"
        if unsafe parser.pointee.error == YAML_READER_ERROR {
            let offset = unsafe parser.pointee.problem_offset
            return ParseError(problem, at: mark(ofByte: offset), isForbiddenCharacter: true)
        }
        let mark = unsafe Mark(parser.pointee.problem_mark)
        guard let context = unsafe parser.pointee.context.map({ unsafe String(cString: $0) }) else {
            return ParseError(problem, at: mark)
        }
        let start = unsafe Mark(parser.pointee.context_mark)
        return ParseError(problem, at: mark, context: ParseError.Context(text: context, mark: start))
    }

    /// libyaml gives the position of a forbidden character as an offset in bytes.
    private func mark(ofByte offset: Int) -> Mark {
        let before = unsafe String(decoding: text.prefix(offset), as: UTF8.self).unicodeScalars
        let line = before.count { $0 == "\n" } + 1
        let column = (before.lastIndex(of: "\n").map { before[before.index(after: $0)...].count } ?? before.count) + 1
        return Mark(line: line, column: column)
    }
}

extension Mark {
    /// libyaml counts lines and columns from 0.
    fileprivate init(_ mark: yaml_mark_t) { self.init(line: Int(mark.line) + 1, column: Int(mark.column) + 1) }
}
