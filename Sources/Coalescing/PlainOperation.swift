/// Work that is never shared. It goes through the same manager, so that the limit and the priorities cover it too.
open class PlainOperation: AnyOperation, @unchecked Sendable {
    private let work: (@Sendable (PlainOperation) -> Void)?

    /// - Parameter work: called by `execute()`, unless a subclass overrides that method. `work`, or the code that it
    ///   starts, calls `finish`.
    public init(_ work: (@Sendable (PlainOperation) -> Void)? = nil) {
        self.work = work
        super.init()
    }

    open override func execute() {
        work?(self)
    }

    /// Ends the operation: with success, or with `error`. False if it had ended already.
    @discardableResult
    public final func finish(_ error: (any Error)? = nil) -> Bool {
        end(error.map { OperationError($0) }, by: .work) { .none }
    }
}
