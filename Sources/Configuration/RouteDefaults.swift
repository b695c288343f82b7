import Bytes
import HTTPSemantics
import Routing
import YAML

/// Checks of keys that `caching` has for all routes, and each route may have for itself: their values must fit
/// together on each route.
extension Reader {
    /// `min-ttl` must not be longer than `max-ttl`.
    mutating func checkLifetimes(of settings: Settings, in root: Node?) {
        let policy = settings.proxy.caching.policy
        forEachPlace(of: settings, in: root) { place, route, reader in
            let (least, most) = (route?.minLifetime ?? policy.minLifetime, route?.maxLifetime ?? policy.maxLifetime)
            guard least > most, let position = Self.position(of: ["min-ttl", "max-ttl"], in: place, of: route) else {
                return
            }
            let text = ScalarSyntax<UInt32>.secondsUpToAYear.write
            reader.note(
                position,
                "`min-ttl` (\(text(least))) is longer than `max-ttl` (\(text(most))); lower the one, or raise the other"
            )
        }
    }

    /// A cookie that is taken out of requests must be neither in the key nor a pass cookie: nothing would find it. A
    /// pass cookie `*` is allowed: it finds all that are left.
    mutating func checkStrippedCookies(of settings: Settings, in root: Node?) {
        let caching = settings.proxy.caching
        let text = ScalarSyntax<CookiePattern>.cookiePattern.write
        forEachPlace(of: settings, in: root) { place, route, reader in
            let stripped = route?.strippedCookies ?? caching.strippedCookies
            guard !stripped.isEmpty else { return }
            if let position = Self.position(of: ["strip-cookies", "pass-cookies"], in: place, of: route) {
                for passing in route?.passCookies ?? caching.passCookies {
                    guard let all = stripped.first(where: { $0.covers(passing) }) else { continue }
                    reader.note(
                        place?["strip-cookies"]?.element(text(all)) ?? place?["pass-cookies"]?.element(text(passing))
                            ?? position,
                        "`strip-cookies: \(text(all))` takes `\(text(passing))` out of requests, so `pass-cookies` never finds it; "
                            + "remove it from one of the two"
                            + (route == nil ? "" : ", or give this route its own list, such as `pass-cookies: []`"))
                }
            }
            guard let cookies = place?["key"]?["cookies"] else { return }
            for name in route?.key.cookies ?? [] {
                guard let all = stripped.first(where: { $0.covers(CookiePattern(name, isPrefix: false)) }) else {
                    continue
                }
                reader.note(
                    cookies.element(String(name)) ?? cookies.position,
                    "`cookies: \(String(name))`: `strip-cookies: \(text(all))` takes this cookie out of requests before the key is made; "
                        + "remove it from one of the two")
            }
        }
    }

    /// The place of the first of `keys`. Of values that the file does not have, since variables set them, it is the
    /// beginning of the file; `nil` for a route that has none of its own.
    private static func position(of keys: [String], in place: Node?, of route: RouteSettings?) -> Position? {
        for key in keys { if let node = place?[key] { return node.position } }
        return route == nil ? Position(line: 1, column: 1) : nil
    }

    /// Calls `check` for `caching`, and for each route that the file has.
    private mutating func forEachPlace(
        of settings: Settings, in root: Node?, _ check: (_ place: Node?, RouteSettings?, inout Reader) -> Void
    ) {
        guard notes.isEmpty else { return }
        check(root?["caching"], nil, &self)
        guard case .list(let list)? = root?["routes"] else { return }
        for (node, route) in zip(list.items, settings.proxy.routes) { check(node, route, &self) }
    }
}

extension CookiePattern {
    /// Whether each cookie of `other` is stripped by this pattern (`RequestNormalization`).
    fileprivate func covers(_ other: CookiePattern) -> Bool {
        let (own, others) = (String(name), String(other.name))
        return isPrefix ? others.hasPrefix(own) : !other.isPrefix && own == others
    }
}

extension Node {
    /// The place of the element with this text, of a list or of a single value.
    fileprivate func element(_ text: String) -> Position? { elements.first { $0.string == text }?.position }
}
