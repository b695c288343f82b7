import Bytes

/// The buffers that the sessions of one loop share: a session holds one only while a field section or frames are incomplete,
/// so that an idle connection has none. Confined to its loop.
public final class SessionMemory {
    /// One spare buffer of each kind: mostly one session at a time uses them.
    private var plain: RequestText?
    private var secure: RequestText?
    private var output: FrameOutput?

    public init() {}

    /// The next frames of a connection go into this buffer, which is empty.
    public func lendOutput() -> FrameOutput { output.take() ?? FrameOutput() }

    public func takeBack(_ output: FrameOutput) { self.output = output }

    func lendText(isSecure: Bool, _ limits: ServerSession.Limits) -> RequestText {
        let spare = isSecure ? secure.take() : plain.take()
        if let spare, spare.mostLines == limits.fieldLines, spare.mostBytes == limits.headBytes { return spare }
        return RequestText(isSecure: isSecure, mostLines: limits.fieldLines, mostBytes: limits.headBytes)
    }

    func takeBack(_ text: RequestText) {
        guard text.text.capacity <= 64 << 10 else { return }
        if text.isSecure { secure = text } else { plain = text }
    }
}
