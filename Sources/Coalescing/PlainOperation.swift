/// Work that is never shared. It goes through the same manager so that the limit and the priorities count it too.
@ThreadSafe
open class PlainOperation: AnyOperation {
    private nonisolated let work: (@Sendable (PlainOperation) -> Void)?

    /// - Parameter work: what `execute()` calls, unless a subclass overrides it. It, or whatever it begins, calls
    ///   `finish`.
    public nonisolated init(_ work: (@Sendable (PlainOperation) -> Void)? = nil) {
        self.work = work
        super.init()
    }

    nonisolated open override func execute() {
        work?(self)
    }

    /// Ends it: with success, or with the error it reports. False when it had ended already.
    @discardableResult
    public nonisolated final func finish(_ error: (any Error)? = nil) -> Bool {
        end(error.map { OperationError($0) }, by: .work) { .none }
    }
}
