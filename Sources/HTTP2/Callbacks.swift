import CNGHTTP2

/// The callbacks and options of all sessions, made once and never changed, so that any thread may use them. The
/// `user_data` of a session is its `ServerSession`, which outlives it.
@safe enum Callbacks {
    nonisolated(unsafe) static let shared: OpaquePointer? = unsafe made()
    nonisolated(unsafe) static let options: OpaquePointer? = unsafe madeOptions()

    /// Has the session do `body`. The caller of nghttp2 holds the session, so no reference is counted.
    @inline(__always)
    private static func tell(_ own: UnsafeMutableRawPointer?, _ body: (ServerSession) -> Int32) -> Int32 {
        guard let own = unsafe own else { return failure }
        return unsafe Unmanaged<ServerSession>.fromOpaque(own)._withUnsafeGuaranteedRef { body($0) }
    }

    private static let failure = NGHTTP2_ERR_CALLBACK_FAILURE.rawValue

    /// Asks the stream how many bytes it has; they are sent by `send_data_callback`, without a copy.
    static let read: nghttp2_data_source_read_callback = { _, id, _, most, flags, _, own in
        // At most the 2 ^ 24 of a frame.
        unsafe Int(Callbacks.tell(own) { unsafe Int32($0.contentIsDue(id, most: most, flags)) })
    }

    private static func madeOptions() -> OpaquePointer? {
        var made: OpaquePointer?
        guard unsafe nghttp2_option_new(&made) == 0, let made = unsafe made else { return nil }
        unsafe nghttp2_option_set_no_auto_window_update(made, 1)
        unsafe nghttp2_option_set_max_deflate_dynamic_table_size(made, 4096)
        unsafe nghttp2_option_set_max_outbound_ack(made, 100)
        // Closed streams are kept for RFC 7540's priorities only.
        unsafe nghttp2_option_set_no_closed_streams(made, 1)
        unsafe nghttp2_option_set_builtin_recv_extension_type(made, UInt8(NGHTTP2_PRIORITY_UPDATE.rawValue))
        return unsafe made
    }

    private static func made() -> OpaquePointer? {
        var made: OpaquePointer?
        guard unsafe nghttp2_session_callbacks_new(&made) == 0, let made = unsafe made else { return nil }
        unsafe setReceiving(made)
        unsafe setSending(made)
        return unsafe made
    }

    private static func setReceiving(_ made: OpaquePointer) {
        unsafe nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(made) { _, frame, _, own in
            guard let frame = unsafe frame else { return Callbacks.failure }
            return unsafe Callbacks.tell(own) { unsafe $0.frameIsInvalid(frame.pointee.hd) }
        }
        unsafe nghttp2_session_callbacks_set_on_begin_headers_callback(made) { _, frame, own in
            guard let frame = unsafe frame else { return Callbacks.failure }
            return unsafe Callbacks.tell(own) {
                unsafe $0.beginHeaders(
                    frame.pointee.hd.stream_id, isRequest: frame.pointee.headers.cat == NGHTTP2_HCAT_REQUEST)
            }
        }
        unsafe nghttp2_session_callbacks_set_on_header_callback(made) {
            _, frame, name, nameCount, value, count, _, own in
            guard let frame = unsafe frame, let name = unsafe name, let value = unsafe value else {
                return Callbacks.failure
            }
            // Both outlive the call.
            return unsafe Callbacks.tell(own) {
                unsafe $0.header(
                    frame.pointee.hd.stream_id, Span(_unsafeStart: name, count: nameCount),
                    Span(_unsafeStart: value, count: count))
            }
        }
        unsafe nghttp2_session_callbacks_set_on_invalid_header_callback(made) { _, frame, _, _, _, _, _, own in
            guard let frame = unsafe frame else { return Callbacks.failure }
            // nghttp2 would drop the line otherwise.
            return unsafe Callbacks.tell(own) { unsafe $0.headerIsInvalid(frame.pointee.hd.stream_id) }
        }
        unsafe nghttp2_session_callbacks_set_on_frame_recv_callback(made) { _, frame, own in
            guard let frame = unsafe frame else { return Callbacks.failure }
            return unsafe Callbacks.tell(own) { unsafe $0.frameCame(frame) }
        }
        unsafe nghttp2_session_callbacks_set_on_data_chunk_recv_callback(made) { _, _, id, bytes, count, own in
            guard let bytes = unsafe bytes else { return Callbacks.failure }
            return unsafe Callbacks.tell(own) { unsafe $0.content(id, Span(_unsafeStart: bytes, count: count)) }
        }
    }

    private static func setSending(_ made: OpaquePointer) {
        unsafe nghttp2_session_callbacks_set_on_frame_send_callback(made) { _, frame, own in
            guard let frame = unsafe frame else { return Callbacks.failure }
            return unsafe Callbacks.tell(own) { unsafe $0.frameWasSent(frame) }
        }
        unsafe nghttp2_session_callbacks_set_on_stream_close_callback(made) { _, id, code, own in
            unsafe Callbacks.tell(own) { $0.streamClosed(id, code) }
        }
        unsafe nghttp2_session_callbacks_set_send_data_callback(made) { _, frame, head, count, _, own in
            guard let frame = unsafe frame, let head = unsafe head else { return Callbacks.failure }
            // The head of a frame has nine bytes (RFC 9113 §4.1).
            return unsafe Callbacks.tell(own) {
                unsafe $0.sendContent(frame.pointee.hd.stream_id, Span(_unsafeStart: head, count: 9), count)
            }
        }
    }
}
