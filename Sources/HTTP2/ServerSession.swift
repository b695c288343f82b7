import Bytes
import CNGHTTP2

/// The server's side of one HTTP/2 connection (RFC 9113): bytes of the peer in, requests out, and the frames of the
/// responses. nghttp2 does frames, HPACK and flow control; this class bounds the cost that a peer may cause.
///
/// Owned by its connection, on the loop's thread. No method waits, and none calls the kernel.
///
/// ```
/// open ─goAway→ draining ─its streams have ended→ over
/// any ─a peer that breaks the rules→ over, with the reason in a GOAWAY that waits to be sent
/// ```
@safe open class ServerSession {
    /// Limits that the peer is told, or held to.
    public struct Limits: Sendable {
        /// The most streams at a time.
        public var streams = 100
        /// The most lines of a field section.
        public var fieldLines = 100
        /// The most bytes of one, as RFC 9113 §6.5.2 counts them.
        public var headBytes = 32 << 10
        /// The bytes of content that a stream, and the connection, may send ahead.
        public var streamWindow = 64 << 10
        /// The same until `widen` is called for the stream.
        public var firstWindow = 16 << 10
        public var connectionWindow = 1 << 20

        public init() {}
    }

    /// So many requests at most are taken between two questions of `takesMore`.
    private static let mostAtOnce = 8

    private let session: OpaquePointer
    private let memory: SessionMemory
    private let limits: Limits
    private let isSecure: Bool
    /// The field section that is being received; lent by `memory`.
    private var section: RequestText?
    private var isAbandoned = false
    private var heads = FrameHeads()
    private var closedStreams = ClosedStreams()
    /// The last stream that the peer has opened.
    private var lastStream: Int32 = 0
    private var hasSaidGoAway = false
    /// Whether the DATA frame that is being received has content.
    private var hasContent = false
    private var isTerminated = false
    /// How many WINDOW_UPDATE frames the content that was sent accounts for.
    private var expectedUpdates = 0
    private var conduct: PeerConduct
    private var now: Int64
    /// The fault of the field section that is being received.
    private var fault: RequestText.Fault?
    private var output: FrameOutput?

    /// - Parameters:
    ///   - isSecure: whether the connection's URLs are of https.
    ///   - memory: of all sessions of the loop.
    ///   - now: nanoseconds of a clock that never goes back.
    /// - Returns: `nil` if memory is short.
    public init?(_ limits: Limits, isSecure: Bool, _ memory: SessionMemory, at now: Int64) {
        self.now = now
        (self.limits, self.isSecure, self.memory) = (limits, isSecure, memory)
        conduct = PeerConduct(at: now)
        guard let callbacks = unsafe Callbacks.shared, let options = unsafe Callbacks.options else { return nil }
        var made: OpaquePointer?
        guard unsafe nghttp2_session_server_new2(&made, callbacks, nil, options) == 0, let made = unsafe made else {
            return nil
        }
        unsafe session = made
        unsafe nghttp2_session_set_user_data(made, Unmanaged.passUnretained(self).toOpaque())
        let settings: [(nghttp2_settings_id, Int)] = [
            (NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, limits.streams),
            (NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, min(limits.firstWindow, limits.streamWindow)),
            (NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, limits.headBytes),
            // RFC 9218 §2.1.
            (NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1),
        ]
        let entries = settings.map { nghttp2_settings_entry(settings_id: Int32($0.0.rawValue), value: UInt32($0.1)) }
        guard unsafe nghttp2_submit_settings(made, UInt8(NGHTTP2_FLAG_NONE.rawValue), entries, entries.count) == 0,
            unsafe nghttp2_session_set_local_window_size(made, 0, 0, Int32(limits.connectionWindow)) == 0
        else { return nil }
    }

    deinit { unsafe nghttp2_session_del(session) }

    // MARK: For subclasses

    /// The peer begins a request.
    /// - Returns: the object for its stream, which the subclass keeps until it is closed, or the session is abandoned;
    ///   `nil` refuses the stream (REFUSED_STREAM), which the peer may repeat elsewhere.
    open func makeStream(_ id: Int32) -> ServerStream? { nil }

    /// The peer has done something once too often, and the connection ends with ENHANCE_YOUR_CALM.
    open func tooOften(_ event: PeerEvent) {}
    /// Either side has reset a stream.
    /// - Parameter code: RFC 9113 §7.
    open func streamWasReset(_ code: UInt32, byPeer: Bool) {}
    /// Either side ends the connection with a GOAWAY that names an error.
    open func connectionFailed(_ code: UInt32, byPeer: Bool) {}
    /// The peer has answered `ping`.
    open func pingWasAnswered() {}
    /// Whether `receive` goes on to further requests. Asked once in `mostAtOnce` of them.
    open var takesMore: Bool { true }

    // MARK: In and out

    /// Takes bytes of the peer. Calls the streams, and `makeStream`.
    /// - Returns: how many it has taken; fewer than all if the rest is to wait (`takesMore`). `nil` if the connection is
    ///   over: the frames that are left to be sent say why.
    public func receive(_ bytes: Span<UInt8>, at now: Int64) -> Int? {
        self.now = now
        var heads = heads
        defer { self.heads = heads }
        // nghttp2 has not got the bytes from `given` on yet.
        var (given, index, requests) = (0, 0, 0)
        while let head = heads.next(in: bytes, from: &index) {
            let isRequest = head.type == UInt8(NGHTTP2_HEADERS.rawValue) && head.stream > lastStream
            if isRequest { requests += 1 }
            if head.concernsOpenStream(after: lastStream) || requests == Self.mostAtOnce {
                guard give(bytes.extracting(given..<index)) else { return nil }
                given = index
            }
            judge(head)
            if isTerminated { return nil }
            if requests == Self.mostAtOnce {
                guard takesMore else { return given }
                requests = 0
            }
        }
        guard give(bytes.extracting(given..<bytes.count)) else { return nil }
        return unsafe nghttp2_session_want_read(session) != 0 ? bytes.count : nil
    }

    private func give(_ bytes: Span<UInt8>) -> Bool {
        guard !isAbandoned else { return false }
        let taken = unsafe bytes.withUnsafeBytes { bytes in
            unsafe nghttp2_session_mem_recv(
                session, bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), bytes.count)
        }
        guard taken < 0 else { return taken == bytes.count && !isAbandoned && !isTerminated }
        switch Int32(clamping: taken) {
        case NGHTTP2_ERR_BAD_CLIENT_MAGIC.rawValue: terminate(NGHTTP2_PROTOCOL_ERROR.rawValue)
        case NGHTTP2_ERR_FLOODED.rawValue: terminate(NGHTTP2_ENHANCE_YOUR_CALM.rawValue)
        default: terminate(NGHTTP2_INTERNAL_ERROR.rawValue)
        }
        return false
    }

    /// Adds frames to `output` until it has `most` bytes or there are none.
    /// - Returns: false if memory is short: the connection cannot go on.
    public func write(to output: FrameOutput, most: Int) -> Bool {
        self.output = output
        defer { self.output = nil }
        while output.count < most {
            var start: UnsafePointer<UInt8>?
            let count = unsafe nghttp2_session_mem_send(session, &start)
            guard count >= 0 else { return false }
            guard count > 0, let start = unsafe start else { return true }
            output.append(unsafe Span(_unsafeStart: start, count: count))
        }
        return true
    }

    /// The session calls no stream any more: the connection has ended, perhaps within a call of `receive`.
    public func abandon() {
        isAbandoned = true
        giveBackSection()
    }

    /// Whether the connection has nothing to receive and nothing to send any more.
    public var isOver: Bool {
        unsafe nghttp2_session_want_read(session) == 0 && nghttp2_session_want_write(session) == 0
    }

    // MARK: What a stream asks

    /// Sends the head of a response, or an interim one.
    /// - Parameters:
    ///   - fields: `:status` first; names in lower case. Lent for the call.
    ///   - hasContent: whether `ServerStream.content` has the content; false for an interim head too.
    /// - Returns: false if the stream is closed, or memory is short.
    public func submit(_ fields: FieldList, for stream: Int32, hasContent: Bool, isInterim: Bool = false) -> Bool {
        unsafe fields.withPairs { pairs in
            if isInterim {
                return unsafe nghttp2_submit_headers(
                    session, UInt8(NGHTTP2_FLAG_NONE.rawValue), stream, nil, pairs.baseAddress, pairs.count, nil) == 0
            }
            guard hasContent else {
                return unsafe nghttp2_submit_response(session, stream, pairs.baseAddress, pairs.count, nil) == 0
            }
            var provider = unsafe nghttp2_data_provider(source: nghttp2_data_source(), read_callback: Callbacks.read)
            return unsafe nghttp2_submit_response(session, stream, pairs.baseAddress, pairs.count, &provider) == 0
        }
    }

    /// Sends trailers behind the content of a response.
    public func submit(trailers: FieldList, for stream: Int32) -> Bool {
        unsafe trailers.withPairs { unsafe nghttp2_submit_trailer(session, stream, $0.baseAddress, $0.count) == 0 }
    }

    /// Whether the windows of a stream and of the connection let so many bytes of content pass now.
    /// - Parameter others: bytes of other streams that pass before them.
    public func hasRoom(for count: Int, of stream: Int32, besides others: Int = 0) -> Bool {
        unsafe nghttp2_session_get_remote_window_size(session) >= count + others
            && nghttp2_session_get_stream_remote_window_size(session, stream) >= count
    }

    /// There is content for a stream that had none before.
    public func resume(_ stream: Int32) { _ = unsafe nghttp2_session_resume_data(session, stream) }

    /// Content of a request is used: the peer may send as much more.
    public func consumed(_ count: Int, of stream: Int32) {
        _ = unsafe nghttp2_session_consume(session, stream, count)
    }

    /// The content of the stream is used as it comes: the peer may send as much ahead as `Limits.streamWindow`.
    public func widen(_ stream: Int32) {
        let wanted = Int32(clamping: limits.streamWindow)
        guard unsafe nghttp2_session_get_stream_effective_local_window_size(session, stream) < wanted else { return }
        _ = unsafe nghttp2_session_set_local_window_size(session, 0, stream, wanted)
    }

    /// Resets a stream.
    /// - Parameter code: RFC 9113 §7.
    public func reset(_ stream: Int32, _ code: UInt32) {
        _ = unsafe nghttp2_submit_rst_stream(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), stream, code)
    }

    // MARK: The end

    /// Tells the peer to open no more streams, in the first of two steps (RFC 9113 §6.8): requests on their way are
    /// still taken.
    public func announceGoAway() { _ = unsafe nghttp2_submit_shutdown_notice(session) }

    /// Takes no further request; the connection is over once the requests that have arrived are answered.
    public func goAway() {
        hasSaidGoAway = true
        _ = unsafe nghttp2_submit_goaway(
            session, UInt8(NGHTTP2_FLAG_NONE.rawValue), nghttp2_session_get_last_proc_stream_id(session),
            NGHTTP2_NO_ERROR.rawValue, nil, 0)
    }

    /// Whether a field section has begun and is not complete.
    public var receivesSection: Bool { section != nil }

    /// Ends the connection.
    /// - Parameter code: RFC 9113 §7.
    public func terminate(_ code: UInt32) {
        (hasSaidGoAway, isTerminated) = (true, true)
        _ = unsafe nghttp2_session_terminate_session(session, code)
    }

    /// Asks the peer for a sign of life.
    public func ping() { _ = unsafe nghttp2_submit_ping(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), nil) }
}

// MARK: - Events of nghttp2

extension ServerSession {
    /// - Returns: false if the connection ends.
    @discardableResult
    private func admit(_ event: PeerEvent) -> Bool {
        guard !conduct.admit(event, at: now) else { return true }
        tooOften(event)
        terminate(NGHTTP2_ENHANCE_YOUR_CALM.rawValue)
        return false
    }

    private func stream(_ id: Int32) -> ServerStream? {
        guard !isAbandoned, let own = unsafe nghttp2_session_get_stream_user_data(session, id) else { return nil }
        return unsafe Unmanaged<ServerStream>.fromOpaque(own).takeUnretainedValue()
    }

    /// Counts a frame, and ends the connection for frames that nghttp2 would drop: frames of a stream that the peer itself
    /// has ended (RFC 9113 §5.1), and a PRIORITY without a stream (§6.3). Called before nghttp2 has the frame's payload.
    private func judge(_ head: FrameHeads.Head) {
        let hasFlag = { (flag: nghttp2_flag) in UInt32(head.flags) & flag.rawValue != 0 }
        switch UInt32(head.type) {
        case NGHTTP2_HEADERS.rawValue where head.stream > lastStream: lastStream = head.stream
        case NGHTTP2_HEADERS.rawValue: judgeClosed(head)
        case NGHTTP2_CONTINUATION.rawValue: break
        case NGHTTP2_DATA.rawValue:
            hasContent = false
            if head.length == 0, !hasFlag(NGHTTP2_FLAG_END_STREAM) { admit(.empty) }
            judgeClosed(head)
        case NGHTTP2_WINDOW_UPDATE.rawValue:
            if expectedUpdates > 0 { expectedUpdates -= 1 } else { admit(.empty) }
        case NGHTTP2_RST_STREAM.rawValue: admit(.resetByPeer)
        case NGHTTP2_PING.rawValue, NGHTTP2_SETTINGS.rawValue:
            if !hasFlag(NGHTTP2_FLAG_ACK) { admit(.acknowledged) }
        case NGHTTP2_PRIORITY.rawValue where head.stream == 0: terminate(NGHTTP2_PROTOCOL_ERROR.rawValue)
        default: admit(.priority)
        }
    }

    private func judgeClosed(_ head: FrameHeads.Head) {
        let id = head.stream
        guard id & 1 == 1, id <= lastStream, !hasSaidGoAway else { return }
        guard unsafe nghttp2_session_find_stream(session, id) == nil else { return }
        guard closedStreams.mayGetFrames(id) else { return terminate(NGHTTP2_STREAM_CLOSED.rawValue) }
        admit(.empty)
    }

    /// nghttp2 refuses a frame, such as one of a stream too many.
    func frameIsInvalid(_ head: nghttp2_frame_hd) -> Int32 {
        closedStreams.add(head.stream_id)
        return 0
    }

    func beginHeaders(_ id: Int32, isRequest: Bool) -> Int32 {
        fault = nil
        let section = section ?? memory.lendText(isSecure: isSecure, limits)
        self.section = section
        guard isRequest else {
            section.beginTrailers()
            return 0
        }
        section.begin()
        guard !isAbandoned, let made = makeStream(id) else {
            reset(id, NGHTTP2_REFUSED_STREAM.rawValue)
            return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue
        }
        // The subclass keeps it for as long as the session may use it.
        unsafe nghttp2_session_set_stream_user_data(session, id, Unmanaged.passUnretained(made).toOpaque())
        return 0
    }

    private func giveBackSection() {
        if let section = section.take() { memory.takeBack(section) }
    }

    func headerIsInvalid(_ id: Int32) -> Int32 {
        fault = .malformed
        reset(id, NGHTTP2_PROTOCOL_ERROR.rawValue)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue
    }

    func header(_ id: Int32, _ name: Span<UInt8>, _ value: Span<UInt8>) -> Int32 {
        // Taken for the call: it would be retained and released for each line.
        guard let section = section.take() else { return 0 }
        defer { self.section = section }
        // nghttp2 decodes each line of a section that is too large, so a section cannot go on for ever.
        guard fault == nil else {
            return section.countsOn(name: name.count, value: value.count) ? 0 : sectionNeverEnds()
        }
        do throws(RequestText.Fault) {
            try section.add(name: name, value: value)
        } catch {
            fault = error
            // A section that is too large is answered with 431 where it can be; one that goes on is not read.
            if error == .malformed {
                reset(id, NGHTTP2_PROTOCOL_ERROR.rawValue)
                return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue
            }
        }
        return 0
    }

    func frameCame(_ frame: UnsafePointer<nghttp2_frame>) -> Int32 {
        let head = unsafe frame.pointee.hd
        let (id, endsStream) = (head.stream_id, head.flags & UInt8(NGHTTP2_FLAG_END_STREAM.rawValue) != 0)
        switch UInt32(head.type) {
        case NGHTTP2_HEADERS.rawValue:
            sectionIsComplete(
                id, isRequest: unsafe frame.pointee.headers.cat == NGHTTP2_HCAT_REQUEST, hasContent: !endsStream)
        case NGHTTP2_DATA.rawValue:
            // One of padding alone.
            if !endsStream, !hasContent, head.length > 0 { admit(.empty) }
            if endsStream { stream(id)?.contentEnded() }
        case NGHTTP2_RST_STREAM.rawValue:
            streamWasReset(unsafe frame.pointee.rst_stream.error_code, byPeer: true)
        case NGHTTP2_GOAWAY.rawValue:
            let code = unsafe frame.pointee.goaway.error_code
            if code != NGHTTP2_NO_ERROR.rawValue { connectionFailed(code, byPeer: true) }
        case NGHTTP2_PING.rawValue:
            if head.flags & UInt8(NGHTTP2_FLAG_ACK.rawValue) != 0 { pingWasAnswered() }
        default: break
        }
        return 0
    }

    private func sectionNeverEnds() -> Int32 {
        tooOften(.fields)
        terminate(NGHTTP2_ENHANCE_YOUR_CALM.rawValue)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue
    }

    private func sectionIsComplete(_ id: Int32, isRequest: Bool, hasContent: Bool) {
        defer { giveBackSection() }
        guard let stream = stream(id), let section else { return }
        defer { if !hasContent { stream.contentEnded() } }
        do throws(RequestText.Fault) {
            if let fault { throw fault }
            try section.finish(hasContent: hasContent)
            let text = section.text
            if isRequest {
                stream.headIsComplete(text.span, hasContent: hasContent)
            } else {
                stream.trailersCame(text.span)
            }
        } catch {
            if error == .tooLarge, isRequest {
                stream.headIsTooLarge()
                admit(.fields)
            } else {
                reset(id, NGHTTP2_PROTOCOL_ERROR.rawValue)
            }
        }
    }

    func content(_ id: Int32, _ bytes: Span<UInt8>) -> Int32 {
        hasContent = true
        guard let stream = stream(id) else {
            _ = unsafe nghttp2_session_consume_connection(session, bytes.count)
            return 0
        }
        stream.received(bytes)
        return 0
    }

    func frameWasSent(_ frame: UnsafePointer<nghttp2_frame>) -> Int32 {
        let head = unsafe frame.pointee.hd
        switch UInt32(head.type) {
        case NGHTTP2_RST_STREAM.rawValue:
            let code = unsafe frame.pointee.rst_stream.error_code
            streamWasReset(code, byPeer: false)
            closedStreams.add(head.stream_id)
            if let event = PeerEvent(ofResetWith: code) { admit(event) }
        case NGHTTP2_GOAWAY.rawValue:
            let code = unsafe frame.pointee.goaway.error_code
            if code != NGHTTP2_NO_ERROR.rawValue { connectionFailed(code, byPeer: false) }
        case NGHTTP2_HEADERS.rawValue, NGHTTP2_DATA.rawValue:
            // An update for the stream, and one for the connection; twice as many for peers that make small steps.
            if UInt32(head.type) == NGHTTP2_DATA.rawValue { expectedUpdates = min(expectedUpdates + 4, 10_000) }
            // The rest of a request whose response is complete is not wanted (RFC 9113 §8.1).
            if head.flags & UInt8(NGHTTP2_FLAG_END_STREAM.rawValue) != 0, stream(head.stream_id)?.awaitsContent == true
            {
                reset(head.stream_id, NGHTTP2_NO_ERROR.rawValue)
            }
        default: break
        }
        return 0
    }

    func streamClosed(_ id: Int32, _ code: UInt32) -> Int32 {
        guard let stream = stream(id) else { return 0 }
        unsafe nghttp2_session_set_stream_user_data(session, id, nil)
        stream.closed(code)
        return 0
    }

    /// How many bytes of a response go into its next DATA frame.
    func contentIsDue(_ id: Int32, most: Int, _ flags: UnsafeMutablePointer<UInt32>?) -> Int {
        guard let stream = stream(id) else { return Int(NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue) }
        let next = stream.content(most: most)
        guard !next.isCutOff else { return Int(NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue) }
        guard next.count > 0 || next.isLast else { return Int(NGHTTP2_ERR_DEFERRED.rawValue) }
        var flag = NGHTTP2_DATA_FLAG_NO_COPY.rawValue
        if next.isLast { flag |= NGHTTP2_DATA_FLAG_EOF.rawValue }
        if next.isLast, next.hasTrailers { flag |= NGHTTP2_DATA_FLAG_NO_END_STREAM.rawValue }
        unsafe flags?.pointee = flag
        return next.count
    }

    func sendContent(_ id: Int32, _ frameHead: Span<UInt8>, _ count: Int) -> Int32 {
        guard let output, let stream = stream(id) else { return NGHTTP2_ERR_CALLBACK_FAILURE.rawValue }
        output.append(frameHead)
        stream.take(count, into: output)
        return 0
    }
}
