import Bytes

extension FieldView {
    /// Whether `Connection` nominates the line at `index`: then the line is for this hop only (RFC 9110 §7.6.1). Walks
    /// all options; `ConnectionOptions` bounds their number when the message is parsed.
    func isNominated(lineAt index: Int) -> Bool {
        guard contains(.connection) else { return false }
        var options = ListIterator(self, .connection)
        while let option = options.next() {
            if option.isEqualIgnoringCase(to: name(at: index)) { return true }
        }
        return false
    }
}
