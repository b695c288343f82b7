import Bytes
import SharedTier

/// What the engine does, without an engine, a clock and Lua: the same commands, the same answers. All times are 0, and a
/// lease, a record or a stream ends only when somebody says so.
struct EngineModel {
    struct Record {
        var token: String
        var length: Int
        var isFresh: Bool
        var head = ""
    }

    /// A resource, a lease or a stream.
    enum Value {
        case resource(vary: String?, records: [String: Record])
        case lease(String)
        case stream([(id: String, fields: [String])])
    }

    var keys: [String: Value] = [:]
    private static let closing = "18446744073709551615-18446744073709551615"

    mutating func execute(_ command: [String]) -> TierValue {
        switch command[0] {
        case "FCALL":
            let count = Int(command[2]) ?? 0
            return call(command[1], Array(command[3..<3 + count]), Array(command[(3 + count)...]))
        case "XADD": return add(command)
        case "XRANGE": return range(command)
        case "GET":
            guard case .lease(let token) = keys[command[1]] else { return .none }
            return .text(ByteSlice(token))
        case "DEL":
            return .integer(keys.removeValue(forKey: command[1]) == nil ? 0 : 1)
        case "XDEL":
            guard case .stream(var entries) = keys[command[1]],
                let index = entries.firstIndex(where: { $0.id == command[2] })
            else { return .integer(0) }
            entries.remove(at: index)
            keys[command[1]] = .stream(entries)
            return .integer(1)
        case "COPY":
            guard let value = keys[command[1]], keys[command[2]] == nil else { return .integer(0) }
            keys[command[2]] = value
            return .integer(1)
        default: fatalError("the model has no \(command[0])")
        }
    }

    private mutating func call(_ function: String, _ names: [String], _ words: [String]) -> TierValue {
        switch function {
        case "co1_look": look(names[0], names[1], words)
        case "co1_head": head(names[0], names[1], words)
        case "co1_renew": .integer(leads(names[0], words[0]) ? 1 : 0)
        case "co1_finish": finish(names[0], names[1], names[2], words)
        case "co1_freshen": freshen(names[0], names[1], words)
        case "co1_unshare": unshare(names[0], words)
        case "co1_release": release(names[0], words)
        default: fatalError("the model has no \(function)")
        }
    }

    private func leads(_ lease: String, _ token: String) -> Bool {
        if case .lease(token) = keys[lease] { true } else { false }
    }

    private func entries(_ stream: String) -> [(id: String, fields: [String])]? {
        if case .stream(let entries) = keys[stream] { entries } else { nil }
    }

    private func resource(_ name: String) -> (vary: String?, records: [String: Record]) {
        if case .resource(let vary, let records) = keys[name] { (vary, records) } else { (nil, [:]) }
    }

    private mutating func set(_ name: String, _ vary: String?, _ records: [String: Record]) {
        keys[name] = vary == nil && records.isEmpty ? nil : .resource(vary: vary, records: records)
    }

    private mutating func look(_ name: String, _ lease: String, _ words: [String]) -> TierValue {
        let (vary, variant, token, broken, stale) = (words[0], words[1], words[2], words[4], words[5])
        var (known, records) = resource(name)
        if let known, known != vary { return Self.answer("vary", known, nil) }
        var stored: TierValue?
        if let record = records[variant] {
            let all = entries(name.dropLast() + "b:" + record.token) ?? []
            let some = record.length <= Int(words[6]) ?? 0 ? all : all.filter { $0.id == "0-1" }
            if record.token == broken || some.isEmpty {
                records[variant] = nil
                set(name, known, records)
            } else {
                stored = .list([
                    .text(ByteSlice(record.token)), .integer(Int64(record.length)), .integer(0), .integer(0),
                    .integer(0), .text(ByteSlice(record.head)), Self.list(some),
                ])
                if record.isFresh, record.token != stale { return Self.answer("hit", record.token, stored) }
            }
        }
        if case .lease(let holder) = keys[lease] {
            if ["-", "--"].contains(holder) { return Self.answer("alone", holder, stored) }
            if holder != broken { return Self.answer("join", holder, stored) }
        }
        if token.isEmpty { return Self.answer("miss", "", stored) }
        keys[lease] = .lease(token)
        return Self.answer("lead", token, stored)
    }

    private static func answer(_ verdict: String, _ token: String, _ stored: TierValue?) -> TierValue {
        let answer: [TierValue] = [.text(ByteSlice(verdict)), .text(ByteSlice(token)), .integer(0), .integer(0)]
        return .list(answer + (stored.map { [$0] } ?? []))
    }

    private mutating func head(_ lease: String, _ stream: String, _ words: [String]) -> TierValue {
        guard leads(lease, words[0]) else { return .integer(0) }
        guard entries(stream) == nil else { return .error(ByteSlice("ERR")) }
        keys[stream] = .stream([("0-1", ["h", words[1], "t", "0"])])
        return .integer(1)
    }

    private mutating func add(_ command: [String]) -> TierValue {
        guard var entries = entries(command[1]) else { return .none }
        // Ids grow, also past entries that were deleted: the schedules delete no last entry.
        if let last = entries.last, !Self.precedes(last.id, command[3]) { return .error(ByteSlice("ERR")) }
        entries.append((command[3], Array(command[4...])))
        keys[command[1]] = .stream(entries)
        return .text(ByteSlice(command[3]))
    }

    private static func precedes(_ left: String, _ right: String) -> Bool {
        let (one, other) = (
            left.split(separator: "-").map { UInt64($0) ?? 0 }, right.split(separator: "-").map { UInt64($0) ?? 0 }
        )
        return (one[0], one[1]) < (other[0], other[1])
    }

    private func range(_ command: [String]) -> TierValue {
        let from = String(command[2].dropFirst())
        let some = (entries(command[1]) ?? []).filter { Self.precedes(from, $0.id) }
        return Self.list(Array(some.prefix(Int(command[5]) ?? 0)))
    }

    private static func list(_ entries: [(id: String, fields: [String])]) -> TierValue {
        .list(entries.map { .list([.text(ByteSlice($0.id)), .list($0.fields.map { .text(ByteSlice($0)) })]) })
    }

    private mutating func finish(_ name: String, _ lease: String, _ stream: String, _ words: [String]) -> TierValue {
        guard leads(lease, words[0]) else { return .integer(0) }
        guard var all = entries(stream), "\(all.count)" == words[1], all.first?.id == "0-1" else {
            keys[lease] = .lease("-")
            return .integer(-1)
        }
        keys[lease] = nil
        if all.last?.id == Self.closing { return .error(ByteSlice("ERR")) }
        all.append((Self.closing, ["e", words[2], "t", words[3], "s", words[9]]))
        keys[stream] = .stream(all)
        guard words[7] != "0" else { return .integer(1) }
        var (_, records) = resource(name)
        records[words[5]] = Record(token: words[0], length: Int(words[2]) ?? 0, isFresh: words[6] != "0")
        set(name, words[4].isEmpty ? nil : words[4], records)
        return .integer(1)
    }

    private mutating func freshen(_ name: String, _ lease: String, _ words: [String]) -> TierValue {
        guard leads(lease, words[0]) else { return .integer(0) }
        keys[lease] = nil
        var (vary, records) = resource(name)
        guard var record = records[words[1]], record.token == words[2],
            keys[name.dropLast() + "b:" + record.token] != nil
        else { return .integer(-1) }
        record.head = words[3]
        record.isFresh = words[4] != "0"
        records[words[1]] = record
        set(name, vary, records)
        return .integer(1)
    }

    private mutating func unshare(_ lease: String, _ words: [String]) -> TierValue {
        guard leads(lease, words[0]) else { return .integer(0) }
        keys[lease] = .lease(words[2])
        return .integer(1)
    }

    private mutating func release(_ lease: String, _ words: [String]) -> TierValue {
        guard leads(lease, words[0]) else { return .integer(0) }
        keys[lease] = nil
        return .integer(1)
    }
}

extension TierCommand {
    /// The arguments as texts.
    var words: [String] {
        arguments.map { argument in
            switch argument {
            case .word(let word): String(word.text.bytes)
            case .bytes(let bytes), .key(let bytes): String(bytes)
            case .number(let number): "\(number)"
            }
        }
    }
}

extension TierValue {
    /// The reply without times, and without the words of an error.
    func withoutTimes(_ command: [String]) -> TierValue {
        switch self {
        case .error: return .error(ByteSlice("ERR"))
        case .list(var values):
            guard command.count > 1, command[1] == "co1_look" else { return withoutHeadTimes }
            guard values.count >= 4 else { return self }
            (values[2], values[3]) = (.integer(0), .integer(0))
            if values.count == 5, case .list(var stored) = values[4], stored.count == 7 {
                (stored[2], stored[3], stored[4]) = (.integer(0), .integer(0), .integer(0))
                stored[6] = stored[6].withoutHeadTimes
                values[4] = .list(stored)
            }
            return .list(values)
        case .none, .integer, .text: return self
        }
    }

    /// The entries of a stream; the time of the head is 0.
    private var withoutHeadTimes: TierValue {
        guard case .list(var entries) = self, case .list(var first)? = entries.first, first.count == 2,
            case .list(var fields) = first[1], fields.count == 4, fields[0] == .text(ByteSlice("h"))
        else { return self }
        fields[3] = .text(ByteSlice("0"))
        first[1] = .list(fields)
        entries[0] = .list(first)
        return .list(entries)
    }
}
