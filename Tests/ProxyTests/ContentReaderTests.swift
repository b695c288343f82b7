import Bytes
import HTTPSemantics
import RouteTesting
import Testing

@testable import Proxy

/// Content goes on in pieces, so many in a turn.
@Suite struct ContentReaderTests {
    /// What is read of `text` in one turn: how many pieces of how many bytes, and what ended it.
    private struct Turn: Equatable {
        enum End { case needMore, end, tooLarge, turnIsOver }

        var pieces = 0
        var bytes = 0
        var end = End.needMore
    }

    private func turn(_ reader: ContentReader, _ input: ByteBuffer) throws -> Turn {
        reader.beginTurn()
        var turn = Turn()
        while true {
            switch try reader.next(in: input.span) {
            case .piece(let range, let consumed):
                turn.pieces += 1
                turn.bytes += range.count
                input.consume(consumed)
            case .needMore(let consumed):
                input.consume(consumed)
                return turn
            case .end(_, let consumed):
                input.consume(consumed)
                turn.end = .end
                return turn
            case .tooLarge:
                turn.end = .tooLarge
                return turn
            case .turnIsOver:
                turn.end = .turnIsOver
                return turn
            }
        }
    }

    private func reader(limit: Int? = nil) throws -> ContentReader {
        ContentReader(try ParsedHead("POST /\nTransfer-Encoding: chunked").head, limit: limit)
    }

    private func input(_ text: String) -> ByteBuffer {
        let buffer = ByteBuffer(capacity: text.utf8.count)
        buffer.append(ByteSlice(text))
        return buffer
    }

    @Test func `a turn ends after a number of pieces, and the next one continues there`() throws {
        let (reader, most) = (try reader(), ContentReader.mostPieces)
        let input = input(String(repeating: "1\r\nx\r\n", count: 2 * most + 1) + "0\r\n\r\nGET")
        #expect(try turn(reader, input) == Turn(pieces: most, bytes: most, end: .turnIsOver))
        #expect(try turn(reader, input) == Turn(pieces: most, bytes: most, end: .turnIsOver))
        #expect(try turn(reader, input) == Turn(pieces: 1, bytes: 1, end: .end))
        #expect(input.count == 3)
    }

    @Test func `the end of content may be all that a turn reads`() throws {
        let (reader, most) = (try reader(), ContentReader.mostPieces)
        let input = input(String(repeating: "1\r\nx\r\n", count: most) + "0\r\n\r\n")
        #expect(try turn(reader, input) == Turn(pieces: most, bytes: most, end: .turnIsOver))
        #expect(try turn(reader, input) == Turn(end: .end))
        #expect(input.isEmpty)
    }

    @Test func `content in few pieces takes one turn, however large`() throws {
        let reader = try reader()
        let input = input("20000\r\n" + String(repeating: "x", count: 0x20000) + "\r\n0\r\n\r\n")
        let read = try turn(reader, input)
        #expect(read.bytes == 0x20000)
        #expect(read.end == .end)
    }

    @Test func `the size limit applies to all turns together`() throws {
        let (reader, most) = (try reader(limit: ContentReader.mostPieces), ContentReader.mostPieces)
        let input = input(String(repeating: "1\r\nx\r\n", count: most + 1))
        #expect(try turn(reader, input) == Turn(pieces: most, bytes: most, end: .turnIsOver))
        #expect(try turn(reader, input) == Turn(end: .tooLarge))
    }
}
