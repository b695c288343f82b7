import CNGHTTP2

/// A client's end of an HTTP/2 connection (RFC 9113), without a socket: frames go in and out of memory. Frames, HPACK and
/// flow control are those of nghttp2, a client of its own beside the program's. Confined to one thread at a time.
@safe final class FramedEnd {
    enum Event {
        /// A field section is complete.
        case fields(Int32, [FieldLine])
        case content(Int32, [UInt8])
        case ended(Int32)
        /// - Parameter refusesRest: whether the request was not all sent.
        case closed(Int32, refusesRest: Bool)
        /// The other end takes no more requests than it has.
        case goingAway
    }

    /// The content of a request that waits to be sent.
    private struct Upload {
        var bytes: [UInt8] = []
        var isComplete = false
        var trailers: [FieldLine] = []
    }

    /// What the frames that came mean, in their order.
    private var events: [Event] = []
    private let session: OpaquePointer
    private let scheme: String
    private var uploads: [Int32: Upload] = [:]
    private var section: [FieldLine] = []

    /// Many streams fill their windows while a test reads the first: that must not hold up the first.
    private static let connectionWindow: Int32 = 64 << 20

    /// - Parameter scheme: of the connection's URLs.
    init(scheme: String) {
        self.scheme = scheme
        var made: OpaquePointer?
        let code = unsafe nghttp2_session_client_new2(&made, Callbacks.shared, nil, Callbacks.options)
        guard code == 0, let made = unsafe made else { fatalError("memory is short") }
        unsafe session = made
        unsafe nghttp2_session_set_user_data(made, Unmanaged.passUnretained(self).toOpaque())
        let settings = [nghttp2_settings_entry(settings_id: Int32(NGHTTP2_SETTINGS_ENABLE_PUSH.rawValue), value: 0)]
        let flags = UInt8(NGHTTP2_FLAG_NONE.rawValue)
        unsafe nghttp2_submit_settings(made, flags, settings, settings.count)
        unsafe nghttp2_session_set_local_window_size(made, flags, 0, Self.connectionWindow)
    }

    deinit { unsafe nghttp2_session_del(session) }

    // MARK: - Frames

    /// Frames of the other end.
    /// - Returns: false if they break the rules: then the connection is over.
    func give(_ bytes: ArraySlice<UInt8>) -> Bool {
        let taken = unsafe bytes.withUnsafeBytes { bytes in
            unsafe nghttp2_session_mem_recv(
                session, bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), bytes.count)
        }
        return unsafe taken == bytes.count
            && (nghttp2_session_want_read(session) != 0
                || nghttp2_session_want_write(session) != 0)
    }

    /// Frames for the other end.
    func takeOutgoing() -> [UInt8] {
        var all: [UInt8] = []
        while true {
            var start: UnsafePointer<UInt8>?
            let count = unsafe nghttp2_session_mem_send(session, &start)
            guard count > 0, let start = unsafe start else { return all }
            unsafe all.append(contentsOf: UnsafeBufferPointer(start: start, count: count))
        }
    }

    func takeEvents() -> [Event] {
        defer { events = [] }
        return events
    }

    // MARK: - Requests

    /// Begins a stream.
    func submit(_ request: FramedRequest) -> Int32 {
        var fields = [FieldLine(name: ":method", value: Array(request.method.utf8))]
        fields.append(FieldLine(name: ":scheme", value: Array(scheme.utf8)))
        if let authority = request.authority {
            fields.append(FieldLine(name: ":authority", value: Array(authority.utf8)))
        }
        fields.append(FieldLine(name: ":path", value: Array(request.target.utf8)))
        let id = unsafe Self.withPairs(fields + request.fields) { pairs in
            var provider = unsafe nghttp2_data_provider(source: nghttp2_data_source(), read_callback: Callbacks.read)
            return unsafe request.hasContent
                ? nghttp2_submit_request(session, nil, pairs.baseAddress, pairs.count, &provider, nil)
                : nghttp2_submit_request(session, nil, pairs.baseAddress, pairs.count, nil, nil)
        }
        precondition(id > 0, "nghttp2 takes no request: \(id)")
        if request.hasContent { uploads[id] = Upload() }
        return id
    }

    func send(_ content: [UInt8], on stream: Int32) {
        uploads[stream]?.bytes += content
        unsafe nghttp2_session_resume_data(session, stream)
    }

    func endContent(of stream: Int32, trailers: [FieldLine]) {
        uploads[stream]?.isComplete = true
        uploads[stream]?.trailers = trailers
        unsafe nghttp2_session_resume_data(session, stream)
    }

    /// Whether content waits for a window.
    var isHeldBack: Bool { uploads.values.contains { !$0.bytes.isEmpty } }

    /// The caller took content of a response: the other end may send as much more.
    func consumed(_ count: Int, of stream: Int32) {
        unsafe nghttp2_session_consume(session, stream, count)
    }

    fileprivate static func withPairs<Result>(
        _ fields: [FieldLine], _ body: (UnsafeBufferPointer<nghttp2_nv>) -> Result
    ) -> Result {
        var bytes = fields.flatMap { Array($0.name.utf8) + $0.value }
        return unsafe bytes.withUnsafeMutableBufferPointer { memory in
            var place = memory.baseAddress
            let pairs = unsafe fields.map { field in
                let (name, value) = (field.name.utf8.count, field.value.count)
                defer { unsafe place = place?.advanced(by: name + value) }
                return unsafe nghttp2_nv(
                    name: place, value: place?.advanced(by: name), namelen: name, valuelen: value,
                    flags: UInt8(NGHTTP2_NV_FLAG_NONE.rawValue))
            }
            return unsafe pairs.withUnsafeBufferPointer { unsafe body($0) }
        }
    }
}

// MARK: - Events of nghttp2

extension FramedEnd {
    fileprivate func field(_ name: UnsafeBufferPointer<UInt8>, _ value: UnsafeBufferPointer<UInt8>) {
        unsafe section.append(FieldLine(name: String(decoding: name, as: UTF8.self), value: Array(value)))
    }

    fileprivate func frameCame(_ head: nghttp2_frame_hd) {
        let type = UInt32(head.type)
        if type == NGHTTP2_GOAWAY.rawValue { events.append(.goingAway) }
        guard type == NGHTTP2_HEADERS.rawValue || type == NGHTTP2_DATA.rawValue else { return }
        if type == NGHTTP2_HEADERS.rawValue {
            events.append(.fields(head.stream_id, section))
            section = []
        }
        if UInt32(head.flags) & NGHTTP2_FLAG_END_STREAM.rawValue != 0 { events.append(.ended(head.stream_id)) }
    }

    fileprivate func content(_ stream: Int32, _ bytes: UnsafeBufferPointer<UInt8>) {
        unsafe events.append(.content(stream, Array(bytes)))
    }

    fileprivate func closed(_ stream: Int32) {
        let upload = uploads.removeValue(forKey: stream)
        events.append(.closed(stream, refusesRest: upload.map { !$0.isComplete || !$0.bytes.isEmpty } ?? false))
    }

    /// Moves content of a request into a DATA frame.
    fileprivate func upload(_ stream: Int32, _ frame: UnsafeMutableBufferPointer<UInt8>) -> (count: Int, flags: UInt32)
    {
        guard let upload = uploads[stream] else { return (0, NGHTTP2_DATA_FLAG_EOF.rawValue) }
        let count = min(upload.bytes.count, frame.count)
        guard count > 0 || upload.isComplete else { return (Int(NGHTTP2_ERR_DEFERRED.rawValue), 0) }
        _ = unsafe frame.update(fromContentsOf: upload.bytes[..<count])
        uploads[stream]?.bytes.removeFirst(count)
        guard upload.isComplete, count == upload.bytes.count else { return (count, 0) }
        guard !upload.trailers.isEmpty else { return (count, NGHTTP2_DATA_FLAG_EOF.rawValue) }
        unsafe Self.withPairs(upload.trailers) {
            _ = unsafe nghttp2_submit_trailer(session, stream, $0.baseAddress, $0.count)
        }
        return (count, NGHTTP2_DATA_FLAG_EOF.rawValue | NGHTTP2_DATA_FLAG_NO_END_STREAM.rawValue)
    }

    /// Made once; any thread.
    @safe fileprivate enum Callbacks {
        nonisolated(unsafe) static let shared: OpaquePointer? = unsafe made()
        nonisolated(unsafe) static let options: OpaquePointer? = unsafe madeOptions()

        static let read: nghttp2_data_source_read_callback = { _, stream, frame, most, flags, _, own in
            let (count, more) = unsafe Callbacks.end(own).upload(
                stream, UnsafeMutableBufferPointer(start: frame, count: most))
            unsafe flags?.pointee |= more
            return count
        }

        private static func end(_ own: UnsafeMutableRawPointer?) -> FramedEnd {
            guard let own = unsafe own else { fatalError("a session without its end") }
            return unsafe Unmanaged<FramedEnd>.fromOpaque(own).takeUnretainedValue()
        }

        private static func madeOptions() -> OpaquePointer? {
            var made: OpaquePointer?
            unsafe nghttp2_option_new(&made)
            unsafe nghttp2_option_set_no_auto_window_update(made, 1)
            return unsafe made
        }

        private static func made() -> OpaquePointer? {
            var made: OpaquePointer?
            unsafe nghttp2_session_callbacks_new(&made)
            unsafe nghttp2_session_callbacks_set_on_header_callback(made) {
                _, _, name, nameCount, value, count, _, own in
                unsafe Callbacks.end(own).field(
                    UnsafeBufferPointer(start: name, count: nameCount), UnsafeBufferPointer(start: value, count: count))
                return 0
            }
            unsafe nghttp2_session_callbacks_set_on_frame_recv_callback(made) { _, frame, own in
                if let frame = unsafe frame { unsafe Callbacks.end(own).frameCame(frame.pointee.hd) }
                return 0
            }
            unsafe nghttp2_session_callbacks_set_on_data_chunk_recv_callback(made) { _, _, stream, bytes, count, own in
                unsafe Callbacks.end(own).content(stream, UnsafeBufferPointer(start: bytes, count: count))
                return 0
            }
            unsafe nghttp2_session_callbacks_set_on_stream_close_callback(made) { _, stream, _, own in
                unsafe Callbacks.end(own).closed(stream)
                return 0
            }
            // A stream that the other end does not want any more.
            unsafe nghttp2_session_callbacks_set_on_frame_not_send_callback(made) { _, frame, _, own in
                if let frame = unsafe frame, unsafe UInt32(frame.pointee.hd.type) == NGHTTP2_HEADERS.rawValue {
                    unsafe Callbacks.end(own).closed(frame.pointee.hd.stream_id)
                }
                return 0
            }
            return unsafe made
        }
    }
}
