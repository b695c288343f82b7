public import HTTPSemantics

/// The rules of a route for its requests and responses that a plain hit must obey too. Most routes have none, and then
/// no such object (`Route.rules`): a plain hit on them tests nothing for it. Immutable.
public final class RouteRules: Sendable {
    /// Which clients may use the route, and how often; `nil`: all, always.
    public let access: AccessRules?
    /// The rules for response fields that are written per response; `nil`: none.
    public let responseFields: FieldRules?
    /// Takes parts out of requests before the key is made; `nil`: requests stay as they were sent.
    public let normalization: RequestNormalization?
    /// The answer to all requests; `nil`: they are looked up.
    public let ownAnswer: OwnAnswer?
    /// Whether the path of a request may be another spelling of one for which another route has access rules.
    let comparesSpellings: Bool
    private let errorPages: [(status: Status, page: OwnContent)]

    /// - Returns: `nil` if neither the route nor the top of the configuration has such a rule.
    init?(_ route: RouteSettings, _ proxy: ProxySettings, responseFields: FieldRules?, comparesSpellings: Bool) {
        access = AccessRules(route)
        self.responseFields = responseFields
        normalization = RequestNormalization(
            strippedCookies: route.strippedCookies ?? proxy.caching.strippedCookies, languages: route.languages)
        ownAnswer = OwnAnswer(route)
        self.comparesSpellings = comparesSpellings
        errorPages = route.errorPages.map { ($0.status, OwnContent($0.file)) }
        if access == nil, responseFields == nil, normalization == nil, ownAnswer == nil, !comparesSpellings,
            errorPages.isEmpty
        {
            return nil
        }
    }

    /// The content that replaces that of every response with this status; `nil`: none does.
    public func errorPage(for status: Status) -> OwnContent? {
        for entry in errorPages where entry.status == status { return entry.page }
        return nil
    }
}
