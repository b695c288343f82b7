/// The rules of a route for its requests and responses that a plain hit must obey too. Most routes have none, and then
/// no such object (`Route.rules`): a plain hit on them tests nothing for it. Immutable.
public final class RouteRules: Sendable {
    /// Which clients may use the route, and how often; `nil`: all, always.
    public let access: AccessRules?
    /// The rules for response fields that are written per response; `nil`: none.
    public let responseFields: FieldRules?

    /// - Returns: `nil` if neither the route nor the top of the configuration has such a rule.
    init?(access: AccessRules?, responseFields: FieldRules?) {
        if access == nil, responseFields == nil { return nil }
        self.access = access
        self.responseFields = responseFields
    }
}
