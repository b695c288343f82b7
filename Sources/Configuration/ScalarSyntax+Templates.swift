import Routing

/// Texts with variables, which become the value of a field (RFC 9110 §5.5).
extension ScalarSyntax where Value == Template {
    /// - Parameter variables: the variables that may occur.
    static func template(_ form: String, allowing variables: [Template.Variable] = Template.Variable.allCases) -> Self {
        ScalarSyntax(form, write: \.text) { text in
            if let reason = reasonAgainst(fieldValue: text) { return .refused(reason) }
            do throws(Template.Mistake) {
                return .value(try Template(text, allowing: variables))
            } catch {
                return .refused(reason(for: error, among: variables))
            }
        }
    }

    private static func reason(for mistake: Template.Mistake, among variables: [Template.Variable]) -> String {
        guard case .unknown(let name) = mistake else {
            return "`${` begins a variable, whose name ends with `}`; add it"
        }
        let shown = "`${\(Spelling.shown(name))}`"
        if let variable = Template.Variable(rawValue: name), !variables.contains(variable) {
            return "\(shown) is known only once there is a response; use it in `response-headers`"
        }
        if let near = Spelling.nearest(to: name, among: variables.map(\.rawValue)) {
            return "\(shown) is no variable; did you mean `${\(near)}`?"
        }
        let names = variables.map { "`${\($0.rawValue)}`" }.joined(separator: ", ")
        return "\(shown) is no variable; use one of \(names)"
    }

    /// The most bytes of a text: every request to the origin, or every response, gets that many more.
    private static var longest: Int { 4096 }

    private static func reasonAgainst(fieldValue text: String) -> String? {
        if text.isEmpty { return "a field's value is not empty here; give one, or leave the line out" }
        if text.utf8.count > longest { return "too long; give at most \(longest) bytes" }
        if text.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) {
            return "a field's value is one line without control characters; remove them"
        }
        if text.utf8.contains(where: { $0 > 0x7F }) {
            return "a field's value has only ASCII characters; percent-encode the others"
        }
        if text.hasPrefix(" ") || text.hasSuffix(" ") { return "a field's value has no space around it; remove it" }
        return nil
    }
}
