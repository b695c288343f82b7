/// A frame of HTTP/2 (RFC 9113 §4.1): what a test makes need not be well-formed.
struct Frame: Sendable {
    enum Kind {
        static let data: UInt8 = 0x0
        static let headers: UInt8 = 0x1
        static let priority: UInt8 = 0x2
        static let reset: UInt8 = 0x3
        static let settings: UInt8 = 0x4
        static let ping: UInt8 = 0x6
        static let goAway: UInt8 = 0x7
        static let windowUpdate: UInt8 = 0x8
        static let continuation: UInt8 = 0x9
        static let priorityUpdate: UInt8 = 0x10
    }

    enum Flag {
        static let endsStream: UInt8 = 0x1
        static let acknowledges: UInt8 = 0x1
        static let endsFields: UInt8 = 0x4
        static let isPadded: UInt8 = 0x8
        static let hasPriority: UInt8 = 0x20
    }

    enum Parameter {
        static let tableSize: UInt16 = 0x1
        static let streams: UInt16 = 0x3
        static let initialWindow: UInt16 = 0x4
        static let frameSize: UInt16 = 0x5
    }

    var kind: UInt8
    var flags: UInt8 = 0
    var stream = 0
    var payload: [UInt8] = []

    static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)

    var bytes: [UInt8] {
        let count = payload.count
        return [UInt8(count >> 16 & 0xFF), UInt8(count >> 8 & 0xFF), UInt8(count & 0xFF), kind, flags]
            + Self.four(stream) + payload
    }

    static func four(_ number: Int) -> [UInt8] { [24, 16, 8, 0].map { UInt8(number >> $0 & 0xFF) } }

    static func number(_ bytes: ArraySlice<UInt8>) -> Int { bytes.reduce(0) { $0 << 8 | Int($1) } }

    // MARK: Kinds

    static func data(_ stream: Int, _ bytes: [UInt8] = [], ends: Bool = false) -> Frame {
        Frame(kind: Kind.data, flags: ends ? Flag.endsStream : 0, stream: stream, payload: bytes)
    }

    static func data(_ stream: Int, _ text: String, ends: Bool = false) -> Frame {
        data(stream, Array(text.utf8), ends: ends)
    }

    static func headers(_ stream: Int, _ block: FieldBlock, ends: Bool = true, endsFields: Bool = true) -> Frame {
        let flags = (ends ? Flag.endsStream : 0) | (endsFields ? Flag.endsFields : 0)
        return Frame(kind: Kind.headers, flags: flags, stream: stream, payload: block.bytes)
    }

    static func continuation(_ stream: Int, _ bytes: [UInt8] = [], endsFields: Bool = false) -> Frame {
        Frame(kind: Kind.continuation, flags: endsFields ? Flag.endsFields : 0, stream: stream, payload: bytes)
    }

    static func priority(_ stream: Int, on other: Int = 0) -> Frame {
        Frame(kind: Kind.priority, stream: stream, payload: four(other) + [16])
    }

    static func reset(_ stream: Int, _ code: ErrorCode = .cancel) -> Frame {
        Frame(kind: Kind.reset, stream: stream, payload: four(Int(code.number)))
    }

    static func settings(_ entries: [(UInt16, Int)] = []) -> Frame {
        Frame(
            kind: Kind.settings,
            payload: entries.flatMap { [UInt8($0.0 >> 8), UInt8($0.0 & 0xFF)] + four($0.1) })
    }

    static let settingsAcknowledged = Frame(kind: Kind.settings, flags: Flag.acknowledges)

    static func ping(_ number: UInt8 = 0) -> Frame {
        Frame(kind: Kind.ping, payload: [UInt8](repeating: number, count: 8))
    }

    static func goAway(_ code: ErrorCode = .none) -> Frame {
        Frame(kind: Kind.goAway, payload: four(0) + four(Int(code.number)))
    }

    static func windowUpdate(_ stream: Int, _ count: Int) -> Frame {
        Frame(kind: Kind.windowUpdate, stream: stream, payload: four(count))
    }

    /// RFC 9218 §7.1.
    static func priorityUpdate(_ stream: Int, _ text: String) -> Frame {
        Frame(kind: Kind.priorityUpdate, payload: four(stream) + Array(text.utf8))
    }
}

/// RFC 9113 §7.
struct ErrorCode: Sendable, Equatable, CustomStringConvertible {
    let number: UInt32

    static let none = Self(number: 0x0)
    static let protocolError = Self(number: 0x1)
    static let internalError = Self(number: 0x2)
    static let flowControlError = Self(number: 0x3)
    static let streamClosed = Self(number: 0x5)
    static let refusedStream = Self(number: 0x7)
    static let cancel = Self(number: 0x8)
    static let enhanceYourCalm = Self(number: 0xB)

    private static let names = [
        "NO_ERROR", "PROTOCOL_ERROR", "INTERNAL_ERROR", "FLOW_CONTROL_ERROR", "SETTINGS_TIMEOUT", "STREAM_CLOSED",
        "FRAME_SIZE_ERROR", "REFUSED_STREAM", "CANCEL", "COMPRESSION_ERROR", "CONNECT_ERROR", "ENHANCE_YOUR_CALM",
        "INADEQUATE_SECURITY", "HTTP_1_1_REQUIRED",
    ]

    var description: String { number < Self.names.count ? Self.names[Int(number)] : "error \(number)" }
}
