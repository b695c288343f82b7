import Bytes

/// Prepares a connection: the protocol's version and the login, push messages, the database, the functions.
///
/// ```
/// HELLO, CLIENT TRACKING, SELECT, FUNCTION LIST, in one write ─all answered, the library is there→ complete
///                                                              └─it is not→ FUNCTION LOAD ─answered→ complete
/// ```
extension RedisConnection {
    func beginSetUp(_ address: RedisAddress) {
        setUp(.hello, hello(address))
        let tracking = RedisCommand("CLIENT")
        tracking.add("TRACKING")
        tracking.add("ON")
        setUp(.tracking, tracking)
        if address.database != 0 {
            let select = RedisCommand("SELECT")
            select.add(address.database)
            setUp(.select, select)
        }
        if let library {
            let list = RedisCommand("FUNCTION")
            list.add("LIST")
            list.add("LIBRARYNAME")
            list.add(library.name)
            setUp(.list, list)
        }
    }

    private func hello(_ address: RedisAddress) -> RedisCommand {
        let hello = RedisCommand("HELLO")
        hello.add(3)
        if let password = address.password {
            hello.add("AUTH")
            hello.add(ByteSlice(address.user ?? "default"))
            hello.add(ByteSlice(password))
        }
        hello.add("SETNAME")
        hello.add("coalesced")
        return hello
    }

    private func setUp(_ step: RedisConnectionEnd.SetUpStep, _ command: RedisCommand) {
        setUpLeft += 1
        sendOwn(command) { [weak self] in self?.setUpAnswered(step, $0) }
    }

    private func setUpAnswered(_ step: RedisConnectionEnd.SetUpStep, _ reply: RedisReply) {
        guard phase == .settingUp else { return }
        setUpLeft -= 1
        switch reply {
        case .value(let value):
            if step == .list, value.elements?.isEmpty == true { loadLibrary() }
        case .failed(let failure):
            guard let text = failure.text else { return }
            return end(.refused(step, text))
        case .late, .unavailable:
            return
        }
        if setUpLeft == 0 { setUpIsComplete() }
    }

    /// Loads the functions, unless they are on their way. Commands that are sent from now on come behind them.
    func loadLibrary() {
        guard let library, !isLoading else { return }
        isLoading = true
        let load = RedisCommand("FUNCTION", size: library.code.count + 64)
        load.add("LOAD")
        load.add(library.code)
        if phase == .settingUp { setUpLeft += 1 }
        sendOwn(load) { [weak self] in self?.loaded($0) }
    }

    private func loaded(_ reply: RedisReply) {
        isLoading = false
        switch reply {
        case .value: break
        // A replica has the functions from its master.
        case .failed(.condition(.readOnly, _)): break
        case .failed(let failure):
            guard let text = failure.text else { return }
            // Another connection has loaded them meanwhile.
            if !text.span.hasPrefix("ERR Library '") || !text.span.holds("already exists", at: text.count - 14) {
                return end(.refused(.load, text))
            }
        case .late, .unavailable: return
        }
        guard phase == .settingUp else { return }
        setUpLeft -= 1
        if setUpLeft == 0 { setUpIsComplete() }
    }
}

extension RedisFailure {
    /// The engine's words; `nil` if they are not the engine's.
    fileprivate var text: ByteSlice? {
        switch self {
        case .condition(_, let text), .error(let text): text
        case .functionUnknown: ByteSlice("ERR Function not found")
        case .redirected: ByteSlice("MOVED")
        case .lost: nil
        }
    }
}
