import Bytes
import Libevent
import Storage

/// Gathering the next bytes of a delivery.
extension Delivery {
    /// The state of the body behind the gathered bytes.
    enum End {
        /// More bytes may have arrived already.
        case more
        /// No more bytes have arrived yet.
        case starved
        case complete, failed
    }

    /// Gathers the next bytes in `control` and `list`, and returns the state of the body behind them. A repeated call
    /// before a write gathers the same bytes, or more.
    /// - Parameter bytes: so many are enough of a body that is still arriving.
    func prepare(_ list: GatherList, bytes: Int = .max) -> End {
        switch source {
        case .none:
            return .complete
        case .lost:
            return .failed
        case .complete(let reader):
            return prepare(reader, list)
        case .arriving(let body, var cursor, let part?):
            return list.withSlices { preparePart(part, of: body, &cursor, &$0, list, bytes: bytes) }
        case .arriving(let body, let cursor, nil):
            guard framing == .chunked else {
                let (phase, reachesEnd) = body.read(at: cursor, limit: GatherList.capacity / 2, bytes: bytes) {
                    list.append($0)
                }
                return Self.end(phase, reachesEnd)
            }
            return list.withSlices { slices in
                let (phase, reachesEnd) = body.read(at: cursor, into: &slices, limit: GatherList.capacity / 2)
                return prepareChunk(slices, list, phase, reachesEnd, body)
            }
        }
    }

    /// Gathers the next bytes of a complete body in `list`. Its length is known, so it is never chunked.
    private func prepare(_ reader: CompleteBodyReader, _ list: GatherList) -> End {
        reader.gather(into: list)
        return list.byteCount == reader.remaining ? .complete : .more
    }

    /// Skips the bytes before the part, then gathers as much of the part as has arrived.
    private func preparePart(
        _ part: Range<Int>, of body: GrowingBody, _ cursor: inout GrowingBody.Cursor, _ slices: inout [ByteSlice],
        _ list: GatherList, bytes: Int
    ) -> End {
        while true {
            slices.removeAll(keepingCapacity: true)
            let (phase, reachesEnd) = body.read(
                at: cursor, into: &slices, limit: GatherList.capacity / 2,
                bytes: cursor.offset < part.lowerBound ? .max : bytes)
            let available = slices.reduce(0) { $0 + $1.count }
            let ahead = min(available, part.lowerBound - cursor.offset)
            if ahead > 0 {
                body.advance(&cursor, by: ahead)
                source = .arriving(body, cursor, part: part)
                continue
            }
            var left = cursor.offset >= part.lowerBound ? part.upperBound - cursor.offset : 0
            if cursor.offset >= part.upperBound { return .complete }
            for slice in slices where left > 0 {
                let piece = min(left, slice.count)
                list.append(slice[0..<piece])
                left -= piece
            }
            let end = Self.end(phase, reachesEnd)
            // The part may have arrived completely although the body has not.
            return left == 0 && end == .starved ? .more : end
        }
    }

    /// Gathers the open chunk, or the next one: its data up to the announced size, its CRLF, and the last chunk if the
    /// body ends there.
    private func prepareChunk(
        _ slices: [ByteSlice], _ list: GatherList, _ phase: GrowingBody.Phase, _ reachesEnd: Bool, _ body: GrowingBody
    ) -> End {
        let available = slices.reduce(0) { $0 + $1.count }
        if case .between = chunks, available > 0 {
            let control = control ?? ByteBuffer(capacity: Self.controlCapacity)
            self.control = control
            chunks.begin(available, in: control)
        }
        // A piece may have grown since the chunk's size was written: the additional bytes belong to the next chunk.
        let announced = chunks.contentLeft
        var left = announced
        for slice in slices where left > 0 {
            let part = min(left, slice.count)
            list.append(slice[0..<part])
            left -= part
        }
        chunks.addEnd(to: list)
        guard announced == available else { return .more }
        let end = Self.end(phase, reachesEnd)
        if end == .complete { chunks.addLast(trailers: trailers(of: body), to: list) }
        return end
    }

    /// The trailer section to send to the client; `nil` if the client did not ask for trailers.
    func trailers(of body: GrowingBody) -> ByteSlice? { passesTrailers ? body.trailers : nil }

    private static func end(_ phase: GrowingBody.Phase, _ reachesEnd: Bool) -> End {
        guard reachesEnd else { return .more }
        switch phase {
        case .open: return .starved
        case .complete: return .complete
        case .failed: return .failed
        }
    }
}
