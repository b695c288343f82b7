import Bytes

extension FieldView {
    /// Whether `Connection` names the line at `index`: then it is for us alone (RFC 9110 §7.6.1). Walks all that it
    /// names, which `ConnectionOptions` bounds where the message is read.
    func isNominated(lineAt index: Int) -> Bool {
        guard contains(.connection) else { return false }
        var options = ListIterator(self, .connection)
        while let option = options.next() {
            if option.isEqualIgnoringCase(to: name(at: index)) { return true }
        }
        return false
    }
}
