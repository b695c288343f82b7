public import Bytes

/// How origins read a path that can be spelled in other ways (RFC 3986 §6.2.2): many take `//a`, `/./a`, `/b/../a` and
/// `/%61` for `/a`.
///
/// Routes and keys have paths as they were sent. Only access rules count for the other paths too (`AccessRules`).
public enum PathSpelling {
    /// Whether an origin may read `path` as another one: only if it has `%`, `//` or `/.`.
    public static func isAmbiguous(_ path: Span<UInt8>) -> Bool {
        var former: UInt8 = 0
        for index in 0..<path.count {
            let byte = path[index]
            if byte == UInt8(ascii: "%") { return true }
            if former == UInt8(ascii: "/"), byte == UInt8(ascii: "/") || byte == UInt8(ascii: ".") { return true }
            former = byte
        }
        return false
    }

    /// The paths that origins may read in `path`, with every octet decoded and dot segments removed. Origins differ in
    /// whether they decode an encoded slash, and whether a slash behind another one counts: up to four paths.
    public static func readings(of path: Span<UInt8>) -> [ByteSlice] {
        var readings: [ByteSlice] = []
        for decodesSlashes in hasEncodedSlash(path) ? [false, true] : [false] {
            for mergesSlashes in [true, false] {
                let decoded = decoded(path, decodingSlashes: decodesSlashes, mergingSlashes: mergesSlashes)
                let reading = TargetURI.withoutDotSegments(decoded.span)
                if !readings.contains(reading) { readings.append(reading) }
            }
        }
        return readings
    }

    /// The path of a route in the form that a reading of its requests begins with.
    public static func normal(_ path: Span<UInt8>) -> ByteSlice {
        TargetURI.withoutDotSegments(decoded(path, decodingSlashes: false, mergingSlashes: true).span)
    }

    /// - Parameter decodingSlashes: otherwise an encoded slash stays, in upper case.
    private static func decoded(_ path: Span<UInt8>, decodingSlashes: Bool, mergingSlashes: Bool) -> ByteBuffer {
        let output = ByteBuffer(capacity: path.count)
        var (index, former) = (0, UInt8(0))
        while index < path.count {
            var byte = path[index]
            index += 1
            if byte == UInt8(ascii: "%"), let octet = octet(in: path, at: index) {
                index += 2
                if octet == UInt8(ascii: "/"), !decodingSlashes {
                    output.append("%2F")
                    former = 0
                    continue
                }
                byte = octet
            }
            let isSlash = byte == UInt8(ascii: "/")
            if isSlash, former == UInt8(ascii: "/"), mergingSlashes { continue }
            output.append(byte)
            former = byte
        }
        return output
    }

    /// The value of the two digits at `index`.
    private static func octet(in path: Span<UInt8>, at index: Int) -> UInt8? {
        guard index + 1 < path.count, let high = path[index].hexadecimalValue,
            let low = path[index + 1].hexadecimalValue
        else { return nil }
        return high << 4 | low
    }

    private static func hasEncodedSlash(_ path: Span<UInt8>) -> Bool {
        for index in 0..<path.count
        where path[index] == UInt8(ascii: "%") && octet(in: path, at: index + 1) == UInt8(ascii: "/") { return true }
        return false
    }
}
