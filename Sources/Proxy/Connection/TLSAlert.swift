import Bytes

extension ByteBuffer {
    /// What a client gets that sends a hello of TLS to a listener without it: a record with the fatal alert
    /// `protocol_version` (RFC 8446 §6), in the form of version 1.0, which clients of all versions read.
    ///
    /// Words in HTTP, as nginx has them, would reach nobody: a client that has sent a hello takes what is no TLS for a
    /// broken server (`wrong version number` in curl and OpenSSL, `sent an invalid response` in Chromium). Of the alerts,
    /// this one says what is the case, that no version of TLS is spoken here, and Chromium tells people so: `uses an
    /// unsupported protocol` (ERR_SSL_VERSION_OR_CIPHER_MISMATCH). After `access_denied` it would speak of a certificate
    /// of the client's own.
    static func tlsAlert() -> ByteBuffer {
        let record: [UInt8] = [21, 3, 1, 0, 2, 2, 70]
        let buffer = ByteBuffer(capacity: record.count)
        buffer.append(record.span)
        return buffer
    }
}
