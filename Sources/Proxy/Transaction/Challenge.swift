import Bytes
import HTTPSemantics
import Libevent
import Routing
import Telemetry

/// A request by which a certificate authority makes sure that this machine answers for a host (RFC 8555 §8.3). The
/// answer is a file that the ACME client has written into the folder `tls.acme-challenges`.
struct Challenge {
    private static let folders = [".well-known", "acme-challenge"]
    private static let prefix: StaticString = "/.well-known/acme-challenge/"
    /// Bytes: a token, a dot and the hash of a key (RFC 8555 §8.1) are fewer than 200.
    private static let mostBytes = 4096

    /// RFC 8555 §8.3: of the alphabet of base64url.
    private let token: String

    /// - Returns: `nil` for other requests.
    init?(_ head: RequestHead, _ fields: FieldView) {
        guard head.method == .get || head.method == .head, head.target.form == .origin, !head.target.hasQuery else {
            return nil
        }
        let path = fields.bytes.extracting(head.target.path.range)
        let start = Self.prefix.utf8CodeUnitCount
        guard path.count > start, path.count <= start + 128,
            path.extracting(0..<start).isEqual(to: Self.prefix)
        else { return nil }
        for index in start..<path.count {
            switch path[index] {
            case 0x30...0x39, 0x41...0x5a, 0x61...0x7a, UInt8(ascii: "-"), UInt8(ascii: "_"): break
            default: return nil
            }
        }
        token = String(path.extracting(start...))
    }

    /// Reads the file on the control loop, since reading waits for the disk.
    /// - Parameter completion: called once on `loop`, not inside this call; never, if either loop ends before.
    func answer(
        from folder: String, _ control: LoopHandle, to loop: EventLoop,
        _ completion: @escaping (SyntheticResponse) -> Void
    ) {
        let caller = LoopBound(completion, on: loop)
        let path = Self.folders + [token]
        control.enqueue {
            let bytes = FolderFile.read(path, below: folder, most: Self.mostBytes)
            caller.handle.enqueue { caller.value(Self.response(with: bytes)) }
        }
    }

    private static func response(with bytes: [UInt8]?) -> SyntheticResponse {
        guard let bytes else { return SyntheticResponse(.notFound, "There is no such challenge.", as: .synthetic) }
        return SyntheticResponse(content: OwnContent(plainText: ByteSlice(copying: bytes.span)))
    }
}
