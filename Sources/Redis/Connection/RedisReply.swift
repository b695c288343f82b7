package import Bytes

/// The outcome of a command.
package enum RedisReply: Sendable {
    /// The engine's answer, which is no error.
    case value(RESPValue)
    /// The command was not sent, or the engine lacks the function that it calls. It changed nothing.
    case unavailable(Unavailability)
    /// There is no answer in time. The engine may have executed the command, or may execute it yet.
    case late
    /// The engine refused, or the connection ended. After `lost`, the engine may have executed the command.
    case failed(RedisFailure)

    /// The reason why a command was not sent.
    package enum Unavailability: String, Sendable {
        /// There is no connection, or it is not ready yet.
        case notConnected = "not-connected"
        case breakerOpen = "breaker-open"
        /// Too many commands, or too many bytes, wait already.
        case full
        /// The functions are being loaded: the engine was emptied.
        case functionsMissing = "functions-missing"
    }

    init(_ value: RESPValue) {
        if case .error(let text) = value { self = .failed(RedisFailure(text)) } else { self = .value(value) }
    }
}

/// The reason why a command that was sent failed.
package enum RedisFailure: Hashable, Sendable {
    /// The engine cannot serve at present; with its words.
    case condition(RedisCondition, ByteSlice)
    /// Another node of the cluster has the key.
    case redirected(RedisRedirection)
    /// The engine knows no such function or script.
    case functionUnknown
    /// Any other error, in the engine's words.
    case error(ByteSlice)
    /// The connection ended before the answer came.
    case lost(RedisConnectionEnd)

    /// - Parameter text: an error of the engine.
    init(_ text: ByteSlice) {
        let bytes = text.span
        if let redirection = RedisRedirection(text) {
            self = .redirected(redirection)
        } else if bytes.hasPrefix("NOSCRIPT ") || bytes.hasPrefix("ERR Function not found") {
            self = .functionUnknown
        } else if let condition = RedisCondition.allCases.first(where: { $0.begins(text) }) {
            self = .condition(condition, text)
        } else {
            self = .error(text)
        }
    }

    /// Whether the engine may be as good as gone, which the breaker counts. An engine that is full, or that forbids a
    /// command, answers in time, and still serves others.
    var countsForBreaker: Bool {
        switch self {
        case .condition(let condition, _): condition.countsForBreaker
        case .lost: true
        case .redirected, .functionUnknown, .error: false
        }
    }
}

/// A state of the engine in which it refuses commands, by the first word of its error.
package enum RedisCondition: CaseIterable, Hashable, Sendable {
    /// It is a replica.
    case readOnly
    /// It reads its data from disk.
    case loading
    /// A part of the cluster's slots has no node.
    case clusterDown
    /// It is a replica without a connection to its master.
    case masterDown
    /// Its memory is full, and it may evict nothing.
    case outOfMemory
    /// A function has been running for too long.
    case busy
    /// The keys of the command are being moved to another node.
    case tryAgain
    /// It has too few replicas to take writes.
    case noReplicas
    /// It cannot save to disk, and takes no writes therefore.
    case cannotSave
    /// The user may not do this.
    case noPermission

    fileprivate func begins(_ text: ByteSlice) -> Bool {
        let (bytes, word) = (text.span, word.bytes)
        return bytes.count > word.count && bytes[word.count] == UInt8(ascii: " ")
            && bytes.extracting(first: word.count).isEqual(to: word)
    }

    /// The word of the engine.
    package var word: StaticString {
        switch self {
        case .readOnly: "READONLY"
        case .loading: "LOADING"
        case .clusterDown: "CLUSTERDOWN"
        case .masterDown: "MASTERDOWN"
        case .outOfMemory: "OOM"
        case .busy: "BUSY"
        case .tryAgain: "TRYAGAIN"
        case .noReplicas: "NOREPLICAS"
        case .cannotSave: "MISCONF"
        case .noPermission: "NOPERM"
        }
    }

    fileprivate var countsForBreaker: Bool {
        switch self {
        case .readOnly, .loading, .clusterDown, .masterDown, .busy: true
        case .outOfMemory, .tryAgain, .noReplicas, .cannotSave, .noPermission: false
        }
    }
}

/// The node of a cluster that is to be asked instead: `MOVED 3999 10.0.0.1:6381`.
package struct RedisRedirection: Hashable, Sendable {
    /// Whether only this command goes there, behind `ASKING`: the slot is being moved (`ASK`).
    package let isOnce: Bool
    /// The slot of the command's key.
    package let slot: ClusterSlot
    /// Address and port, as the node writes them. Without an address it is the one of the node that answered.
    package let node: ByteSlice

    /// - Parameter text: an error of the engine; `nil` if it is none of these.
    init?(_ text: ByteSlice) {
        let bytes = text.span
        let start: Int
        if bytes.hasPrefix("MOVED ") {
            (isOnce, start) = (false, 6)
        } else if bytes.hasPrefix("ASK ") {
            (isOnce, start) = (true, 4)
        } else {
            return nil
        }
        guard let space = bytes.firstIndex(of: UInt8(ascii: " "), from: start),
            let number = bytes.extracting(start..<space).wholeNumber, let slot = ClusterSlot(number),
            space + 1 < bytes.count
        else { return nil }
        self.slot = slot
        node = text[space + 1..<text.count]
    }
}
