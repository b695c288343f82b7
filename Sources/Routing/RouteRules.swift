/// The rules of a route for its requests and responses that a plain hit must obey too. Most routes have none, and then
/// no such object (`Route.rules`): a plain hit on them tests nothing for it. Immutable.
public final class RouteRules: Sendable {
    /// Which clients may use the route, and how often; `nil`: all, always.
    public let access: AccessRules?

    /// - Returns: `nil` if neither the route nor the top of the configuration has such a rule.
    init?(_ route: RouteSettings, _ proxy: ProxySettings) {
        access = AccessRules(route)
        if access == nil { return nil }
    }
}
