package import Bytes
import HTTPSemantics

/// The heads that go to the client as they came.
extension ReceivedHead {
    /// An interim response in the form that goes to the client.
    package func interim() -> ByteSlice {
        let buffer = ByteBuffer(capacity: 256)
        buffer.appendStatusLine(head.status)
        // Framing fields have no place in a 1xx (RFC 9110 §8.6).
        buffer.appendFields(fields, connection: head.connection, dropping: .framing)
        buffer.appendLineEnd()
        return buffer.copied()
    }

    /// A 101 in the form that goes to the client, without the bytes that followed it (`content`).
    package func upgrade() -> ByteBuffer {
        let buffer = ByteBuffer(capacity: 512)
        buffer.appendStatusLine(head.status, reason: fields.bytes.extracting(head.reason.range))
        buffer.appendFields(fields, connection: head.connection, dropping: .framing)
        buffer.append("Connection: Upgrade\r\n")
        var upgrades = LineIterator(fields, .upgrade)
        while let upgrade = upgrades.next() { buffer.appendField("Upgrade", upgrade) }
        buffer.appendLineEnd()
        return buffer
    }
}
