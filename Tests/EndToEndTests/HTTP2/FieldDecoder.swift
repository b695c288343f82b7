import CNGHTTP2

/// Reads HPACK (RFC 7541) with nghttp2's decoder. Confined to one thread.
@safe final class FieldDecoder {
    private let inflater: OpaquePointer

    init() {
        var made: OpaquePointer?
        guard unsafe nghttp2_hd_inflate_new(&made) == 0, let made = unsafe made else { fatalError("memory is short") }
        unsafe inflater = made
    }

    deinit { unsafe nghttp2_hd_inflate_del(inflater) }

    /// The lines of one section; `nil` if it is no HPACK.
    func fields(_ block: [UInt8]) -> [Field]? {
        var fields: [Field] = []
        var start = 0
        while true {
            var (line, flags) = (unsafe nghttp2_nv(), Int32(0))
            let count = unsafe block.withUnsafeBufferPointer { bytes in
                unsafe nghttp2_hd_inflate_hd2(
                    inflater, &line, &flags, bytes.baseAddress.map { unsafe $0 + start }, bytes.count - start, 1)
            }
            guard count >= 0 else { return nil }
            start += count
            if flags & Int32(NGHTTP2_HD_INFLATE_EMIT.rawValue) != 0 {
                let name = unsafe UnsafeBufferPointer(start: line.name, count: line.namelen)
                let value = unsafe UnsafeBufferPointer(start: line.value, count: line.valuelen)
                unsafe fields.append((String(decoding: name, as: UTF8.self), String(decoding: value, as: UTF8.self)))
            }
            if flags & Int32(NGHTTP2_HD_INFLATE_FINAL.rawValue) != 0 {
                unsafe nghttp2_hd_inflate_end_headers(inflater)
                return fields
            }
            guard start < block.count || flags & Int32(NGHTTP2_HD_INFLATE_EMIT.rawValue) != 0 else { return nil }
        }
    }
}
