import Testing

@testable import HTTP2

@Suite struct FrameHeadsTests {
    private let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)

    @Test(arguments: [1, 2, 3, 7, 9, 10, 1000])
    func `heads are found in pieces of any size`(_ size: Int) {
        typealias Frame = ServerSessionTests.Frame
        let frames = [
            Frame(type: 4), Frame(type: 1, flags: 5, stream: 1, payload: [1, 2, 3]),
            Frame(type: 0, stream: 0x7FFF_FFFF, payload: Array(repeating: 0, count: 300)), Frame(type: 200, stream: 3),
        ]
        let bytes = preface + frames.flatMap(\.bytes)
        var heads = FrameHeads()
        var found: [FrameHeads.Head] = []
        for start in stride(from: 0, to: bytes.count, by: size) {
            let piece = Array(bytes[start..<min(start + size, bytes.count)])
            var index = 0
            while let head = heads.next(in: piece.span, from: &index) { found.append(head) }
            #expect(index == piece.count)
        }
        #expect(
            found
                == frames.map {
                    FrameHeads.Head(
                        length: $0.payload.count, type: $0.type, flags: $0.flags, stream: Int32($0.stream))
                })
    }

    @Test func `streams that were closed here are known, and of the oldest ones nothing is said`() {
        var streams = ClosedStreams()
        #expect(!streams.mayGetFrames(1))
        for number in 0..<150 { streams.add(Int32(1 + 2 * number)) }
        #expect(streams.mayGetFrames(1) && streams.mayGetFrames(99) && streams.mayGetFrames(299))
        #expect(!streams.mayGetFrames(301))
        // Not one of them, but older than the last that is forgotten.
        #expect(streams.mayGetFrames(50))
    }
}
