import HTTPSemantics
import RouteTesting
import Telemetry

@testable import Routing

extension Route {
    /// Whose requests are counted nowhere.
    convenience init(_ settings: RouteSettings, origin: Origin, _ proxy: ProxySettings) {
        self.init(
            settings, origin: origin, proxy, passCookies: CookiePatterns(proxy.caching.passCookies), LoopMetrics())
    }
}
