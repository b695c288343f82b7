import Bytes
import Testing

@testable import HTTP2

@Suite struct FieldListTests {
    private func fields(_ list: FieldList) -> [String] {
        var found: [String] = []
        list.forEach { name, value in
            found.append("\(ServerSessionTests.text(name))=\(ServerSessionTests.text(value))")
        }
        return found
    }

    @Test func `a head of HTTP1 becomes fields in lower case, without those of the connection`() {
        let list = FieldList()
        let head = ByteSlice(
            "HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\nConnection: close\r\nKEEP-ALIVE: 1\r\n"
                + "Transfer-Encoding: chunked\r\nUpgrade: a\r\nProxy-Connection: b\r\nX-Empty:\r\nX-A: b:c\r\n\r\nrest")
        let taken = list.append(head: head.span)
        #expect(fields(list) == [":status=404", "content-type=text/plain", "x-empty=", "x-a=b:c"])
        #expect(taken == head.count - 4)
    }

    @Test func `several heads follow one another`() {
        let list = FieldList()
        let heads = ByteSlice("HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n")
        let first = list.append(head: heads.span)
        #expect(fields(list) == [":status=103", "link=a"])
        list.removeAll()
        let second = list.append(head: heads.span.extracting(first..<heads.count))
        #expect(fields(list) == [":status=100"] && first + second == heads.count)
    }

    @Test func `fields stay as they are while the list grows`() {
        let list = FieldList()
        var expected: [String] = []
        for number in 0..<1000 {
            list.append(":status", decimal: UInt64(number))
            let lines = ByteSlice("X-\(number): \(number)\r\nConnection: x\r\nUPGRADED: 1\r\n\r\n")
            let taken = list.append(lines: lines.span)
            #expect(taken == lines.count)
            list.append(ByteSlice("Y").span, ByteSlice("").span)
            expected += [":status=\(number)", "x-\(number)=\(number)", "upgraded=1", "y="]
        }
        #expect(fields(list) == expected && list.count == 4000)
    }

    @Test func `a last line without a colon or an end adds nothing`() {
        for text in ["A: 1\r\nB", "A: 1\r\nB: 2"] {
            let list = FieldList()
            let taken = list.append(lines: ByteSlice(text).span)
            #expect(fields(list) == ["a=1"] && taken == text.utf8.count)
        }
    }

    @Test func `lines end at an empty one, or with the bytes`() {
        let list = FieldList()
        let count = list.append(lines: ByteSlice("A: 1\r\nB: 2\r\n").span)
        #expect(fields(list) == ["a=1", "b=2"] && count == 12)
    }

    @Test func `of all bytes, at any place of a name, only letters change`() {
        for length in [1, 7, 8, 9, 16, 19] {
            for place in 0..<length {
                var name = [UInt8](repeating: UInt8(ascii: "M"), count: length)
                var lower = [UInt8](repeating: UInt8(ascii: "m"), count: length)
                for byte in UInt8.min...UInt8.max {
                    name[place] = byte
                    lower[place] = (0x41...0x5A).contains(byte) ? byte + 0x20 : byte
                    let list = FieldList()
                    list.append(name.span, lower.span)
                    var found: [UInt8] = []
                    list.forEach { name, _ in for index in 0..<name.count { found.append(name[index]) } }
                    #expect(found == lower, "\(byte) at \(place) of \(length)")
                    // Bytes at which a name, or a line, ends.
                    guard byte != UInt8(ascii: ":"), byte != UInt8(ascii: "\r") else { continue }
                    list.removeAll()
                    let line = name + Array(": M".utf8) + name + Array("\r\n".utf8)
                    list.append(lines: line.span)
                    list.forEach { found, value in
                        #expect(ServerSessionTests.array(found) == lower, "\(byte) at \(place) of \(length), a line")
                        #expect(ServerSessionTests.array(value).dropFirst() == name[...])
                    }
                    #expect(list.count == 1)
                }
            }
        }
    }
}
