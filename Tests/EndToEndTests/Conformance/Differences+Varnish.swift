extension Differences {
    /// Found with Varnish 7.1.
    static let varnish: [Group] = [
        Group(
            "targeted fields, cache groups and `No-Vary-Search` are not known (RFC 9213, RFC 9875)",
            """
            CDN-Cache-Control takes precedence over Cache-Control
            CDN-Cache-Control takes precedence over Expires
            CDN-Cache-Control can prohibit storing
            CDN-Cache-Control: no-cache
            CDN-Cache-Control: private
            CDN-Cache-Control: s-maxage
            of a duplicate key the last value counts
            a response of two groups is invalidated with either
            a shorter CDN-Cache-Control
            a value of a wrong type makes the response stale
            an unsafe request invalidates the group of the response that it invalidates
            an unsafe request invalidates the groups that its response names
            equal names keep their order, even if the order of different names does not matter
            except=("a"): only the parameter a matters
            except=(): no parameter matters
            key-order: the order of names does not matter
            no query equals a query whose parameters do not matter
            params=("a"): the parameter a does not matter
            percent-encoding does not hide a name
            unknown parameters and members
            """),
        Group(
            "apparent age and response delay do not count; `Expires` is compared with the own clock (§4.2.3)",
            """
            Date further back than the lifetime
            Date in the past is apparent age
            Expires is compared with Date, not with the proxy's clock
            a response slower than its lifetime is stale on arrival
            the delay of the response counts as age
            the larger of Age and apparent age
            """),
        Group(
            "lifetimes are only taken from what is explicit, never guessed (§4.2.2: MAY)",
            """
            200 may have a heuristic lifetime
            203 may have a heuristic lifetime
            204 may have a heuristic lifetime
            300 may have a heuristic lifetime
            301 may have a heuristic lifetime
            308 may have a heuristic lifetime
            404 may have a heuristic lifetime
            405 may have a heuristic lifetime
            410 may have a heuristic lifetime
            501 may have a heuristic lifetime
            Last-Modified in the future
            Pragma: no-cache permits a heuristic lifetime
            a page changed a minute ago is fresh for some seconds
            a page changed just now has no heuristic lifetime
            a query is no exception
            a tenth of the time since the change, over soon
            public permits a heuristic lifetime for any status
            """),
        Group(
            "only some statuses are stored (§3: MAY)",
            """
            299 is stored when its lifetime is explicit
            303 is stored when its lifetime is explicit
            308 is stored when its lifetime is explicit
            400 is stored when its lifetime is explicit
            403 is stored when its lifetime is explicit
            405 is stored when its lifetime is explicit
            418 is stored when its lifetime is explicit
            451 is stored when its lifetime is explicit
            499 is stored when its lifetime is explicit
            500 is stored when its lifetime is explicit
            501 is stored when its lifetime is explicit
            503 is stored when its lifetime is explicit
            599 is stored when its lifetime is explicit
            """),
        Group(
            "`Cache-Control` and `Pragma` of clients are not read (§5.2.1: MAY), nor sent on (§5.2: MUST); `only-if-cached` goes to the origin",
            """
            a HEAD response with another length makes the stored one stale
            a HEAD response with another tag makes the stored one stale
            Pragma: no-cache is no-cache
            a client that limits the age gets no stale response
            a newer response replaces the older
            a request with no-store keeps its conditions
            request directives are forwarded
            max-age younger than the response
            max-age=0 asks the origin after a second
            max-stale does not override must-revalidate
            max-stale does not override no-cache
            max-stale does not override proxy-revalidate
            max-stale does not override s-maxage
            max-stale with room
            max-stale without room
            min-fresh beyond the remaining lifetime
            no-cache asks conditionally if possible
            no-cache asks the origin
            no-store is not stored
            only-if-cached for HEAD
            only-if-cached with max-stale, stored and stale
            only-if-cached, another variant stored: 504
            only-if-cached without a stored response: 504
            only-if-cached, stored and stale: 504
            each request with no-store is a fetch
            stale-if-error of the request
            an invalidated response does not satisfy only-if-cached
            """),
        Group(
            "requests with `Authorization` or `Cookie` go past the cache, whatever the answer allows",
            """
            Authorization and must-revalidate, max-age=100: shared
            Authorization and public, max-age=100: shared
            Authorization and s-maxage=100: shared
            cookies are not in the key
            a response stored without Authorization serves requests with Authorization
            """),
        Group(
            "unsafe methods invalidate nothing (§4.4: MUST); that is left to the operator's VCL",
            """
            Content-Location as an absolute URI
            Content-Location of the same origin is invalidated
            Content-Location relative to the target
            DELETE invalidates its target
            FROB invalidates its target
            Location as an absolute URI
            Location of the same origin is invalidated
            Location relative to the target
            MKCOL invalidates its target
            PATCH invalidates its target
            POST invalidates its target
            PUT invalidates its target
            a 200 to POST invalidates
            a 201 to POST invalidates
            a 204 to POST invalidates
            a 302 to POST invalidates
            a 303 to POST invalidates
            a fetch in flight is not stored as if newer
            all variants are invalidated
            get invalidates its target
            an invalidated response is not served stale
            a request after the change does not join a fetch before the change
            """),
        Group(
            "directives are found without regard to quoting, dates by case; malformed lifetimes are none; `must-understand` is not known (§5.2, §5.3)",
            """
            Expires in small letters
            a directive in a quoted string is ignored
            a name that begins like a directive is another directive
            a quoted argument
            an escaped quote ends no string
            max-age without argument makes the response stale
            max-age= makes the response stale
            max-age=-1 makes the response stale
            max-age=0x64 makes the response stale
            max-age=1.5 makes the response stale
            max-age=100s makes the response stale
            max-age=1e3 makes the response stale
            max-age=abc makes the response stale
            must-understand overrides no-store if the status is understood
            """),
        Group(
            "qualified `no-cache` and `private` forbid storing, and `Set-Cookie` always does (§5.2.2.4: MAY)",
            """
            Set-Cookie in a qualified directive: stored without the cookie
            Set-Cookie with public: stored with the cookie
            no-cache= with fields: stored without them
            private= with fields: stored without them
            qualified fields go to the leader, not to the waiters
            """),
        Group(
            "wrong, unknown and multiple ranges are 416 instead of ignored or served; HEAD has ranges (RFC 9110 §14.2: MUST ignore); on a miss `Range` is not sent on, and a 206 is an error",
            """
            HEAD has no ranges
            a 206 to no Range is not stored as a full response
            a body cut off is completed by a range
            a body cut off that has changed is fetched again
            a range of a body cut off is served
            bytes 0-4 is ignored
            bytes is ignored
            bytes= is ignored
            bytes=0-4;5-6 is ignored
            bytes=0-99999999999999999999
            bytes=1 is ignored
            bytes=4-2 is ignored
            bytes=a-b is ignored
            near ranges are joined to one
            the response to an unshared fetch is forwarded unchanged
            one satisfiable range of two
            overlapping ranges are joined to one
            pages=1-2 is ignored
            too many ranges get the full response
            two ranges are two parts
            """),
        Group(
            "a body cut off may end as an error; answers with trailers always do",
            """
            a hit sends trailers to a client that takes them
            a body cut off without a strong tag is not kept
            a response cut off by length is cut off, and not stored
            a response cut off in a chunk is cut off, and not stored
            trailers do not go to a client that does not
            trailers go to a client that takes them
            """),
        Group(
            "an interim response ends the fetch with an error (RFC 9110 §15.2: MUST be parsed and forwarded)",
            """
            103 goes to the client
            an unrequested 100 is not forwarded
            a client of HTTP/1.0 gets no interim response
            an unknown interim response is forwarded too
            several interim responses are forwarded in order
            interim responses are not stored
            interim responses go to all waiters
            """),
        Group(
            "the host is compared with its port; `Vary` compares fields byte by byte, after joining lines of any, and knows no `*` in a list; one that forgot `Vary` hides one with it (§4.1: SHOULD NOT); the last to arrive goes before the most recent (§4: MUST)",
            """
            Vary: * among others
            a comma matters in a field not known to be a list
            another host is another response
            lines of the nominated field are combined
            a response with Vary is preferred to a newer one without
            the most recent by Date, not by arrival
            """),
        Group(
            "`If-Match` and `If-Unmodified-Since` are answered from the store (§4.3.2: MUST NOT); `If-None-Match` is not read as a list (RFC 9110 §13.1.2); only `Last-Modified` is compared; a 304 keeps fields of the content",
            """
            If-Match is for the origin
            If-Modified-Since is compared with Date if there is no Last-Modified
            If-None-Match takes precedence over Range
            If-None-Match: "x", "a" of a stored response is 304
            If-None-Match: * of a stored response is 304
            If-Unmodified-Since is for the origin
            a 304 from the store has Age, Date and Cache-Control and no content fields
            a 404 to a client's If-Match is not shared either
            """),
        Group(
            "what is stale on arrival is not stored, so there is nothing to validate or to serve stale (§3: MAY); a 304 to a request without condition is an error",
            """
            Expires in the past
            Expires that is empty is past
            Expires that is no date is past
            Expires: 0 is past, and prevents a heuristic lifetime
            Last-Modified is sent unchanged
            Last-Modified validates
            a 302 on validation is sent to the client
            a 304 does not change Content-Length
            a 304 for a tag that the client lacks becomes the full response
            a 304 renews the age
            a 304 replaces all lines of a field
            a 304 that says no-store ends reuse
            a 304 to a request without condition is not stored
            a 304 updates and adds fields
            the Age of a 304 counts
            a 304 with another strong tag freshens no response
            a 304 with private= removes the named fields
            a 304 without lifetime restarts the old lifetime
            a 304's Content-Range is not stored
            a 304's Set-Cookie does not go to the waiters
            a 304's Set-Cookie is not stored
            a 304's fields for one hop are not stored
            a 400 on validation is sent to the client
            a 404 on validation is sent to the client
            a 410 on validation is sent to the client
            a 500 on validation is forwarded where stale is not allowed
            a 502 on validation is forwarded where stale is not allowed
            a 503 on validation is forwarded where stale is not allowed
            a 504 on validation is forwarded where stale is not allowed
            a full response replaces the stored one
            a failed refresh leaves the stored response
            a stale response is validated by its tag
            a validated response is a 304 to a client that has the response
            a validation is one fetch for all waiters
            a weak tag confirms the request's own variant, not a newer one with the same tag
            a weak tag is sent unchanged
            after a 5xx the response is still stored
            both validators are sent
            disconnected: a stale response is served without a directive
            max-age=0 is one fetch for all waiters
            must-revalidate takes precedence over stale-if-error
            must-revalidate takes precedence over stale-while-revalidate
            must-revalidate is not served stale to a disconnected client
            no heuristic lifetime beside max-age=0
            no-cache takes precedence over stale-if-error
            no-cache is not served stale to a disconnected client
            no-cache is validated each time
            proxy-revalidate takes precedence over stale-if-error
            proxy-revalidate is not served stale to a disconnected client
            s-maxage=10 takes precedence over stale-if-error
            s-maxage=10 is not served stale to a disconnected client
            stale-if-error covers a 500
            stale-if-error covers a 502
            stale-if-error covers a 503
            stale-if-error covers a 504
            stale-if-error covers a connection that ends
            stale-while-revalidate serves at once and refreshes
            the client's tags are sent to the origin too
            a 304 for a tag that only the client has is forwarded, and freshens no response
            a weak tag of the client is sent unchanged
            the client's tag is compared weakly with that of the 304
            a client's weak tag that matches the stored one weakly is answered from the store
            the client's * is not forwarded, and any response becomes a 304
            the client's tags are not sent if only a date is stored
            the client's date is not sent, and is compared with the validated response
            the client's date is not sent if only a tag is stored
            HEAD with a tag that only the client has
            variants validate with their own validators
            a field that a 304 names in private= goes to the leader
            """),
        Group(
            "what may not be stored is never shared with those who wait (§4: MAY)",
            """
            a response without lifetime is one fetch for all waiters
            an error is one fetch for all waiters
            """),
        Group(
            "`Proxy-Connection` and `Proxy-Authentication-Info` go on (RFC 9110 §7.6.1)",
            """
            Proxy-Authentication-Info is for one hop
            Proxy-Connection is for one hop
            """),
        Group(
            "HEAD fetches with GET, so it freshens nothing (§4.3.5: SHOULD)",
            """
            a HEAD response that agrees freshens the stored one
            a HEAD's Set-Cookie is not stored
            """),
    ]
}
