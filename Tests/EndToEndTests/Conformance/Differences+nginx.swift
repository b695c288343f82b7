extension Differences {
    /// Found with nginx 1.22.
    static let nginx: [Group] = [
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
            "`Age`, apparent age and response delay do not count, so what comes old is fresh; hits carry no `Age` of their own (§4.2.3, §5.1, §4: MUST)",
            """
            Age and Expires
            Age as a list: the first
            Age as large as the lifetime
            Age beyond 2^64
            Age grows with time in the store
            Age larger than the lifetime
            Age of the origin is replaced
            Age twice: the first
            Age:  is ignored
            Age: -10 is ignored
            Age: 1.5 is ignored
            Age: 99x is ignored
            Age: abc is ignored
            Date further back than the lifetime
            Date in the future is no negative age
            Date in the past is apparent age
            Date missing: fresh from its arrival, and a Date is added
            Date that is no date
            a 304 renews the age
            the Age of a 304 counts
            a 304 without lifetime restarts the old lifetime
            a 500 on validation is forwarded where stale is not allowed
            a 502 on validation is forwarded where stale is not allowed
            a 503 on validation is forwarded where stale is not allowed
            a 504 on validation is forwarded where stale is not allowed
            a client that limits the age gets no stale response
            a hit has Age
            a response slower than its lifetime is stale on arrival
            after a 5xx the response is still stored
            max-stale does not override must-revalidate
            max-stale does not override proxy-revalidate
            max-stale does not override s-maxage
            max-stale without room
            must-revalidate takes precedence over stale-if-error
            must-revalidate takes precedence over stale-while-revalidate
            must-revalidate is not served stale to a disconnected client
            must-revalidate is validated when stale
            no-cache takes precedence over stale-if-error
            proxy-revalidate takes precedence over stale-if-error
            proxy-revalidate is not served stale to a disconnected client
            s-maxage=10 takes precedence over stale-if-error
            s-maxage=10 is not served stale to a disconnected client
            stale-if-error does not cover a 404
            stale-if-error does not cover a 501
            stale-if-error that is over
            stale-while-revalidate begins when max-age ends
            stale-while-revalidate serves at once and refreshes
            stale-while-revalidate that is over
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
            "`Cache-Control` and `Pragma` of clients are not read (§5.2.1: MAY); `only-if-cached` goes to the origin",
            """
            a HEAD response with another length makes the stored one stale
            a HEAD response with another tag makes the stored one stale
            Pragma: no-cache is no-cache
            a newer response replaces the older
            a request with no-store keeps its conditions
            max-age younger than the response
            max-age=0 asks the origin after a second
            min-fresh beyond the remaining lifetime
            no-cache asks conditionally if possible
            no-cache asks the origin
            no-store is not stored
            only-if-cached for HEAD
            only-if-cached, another variant stored: 504
            only-if-cached without a stored response: 504
            only-if-cached, stored and stale: 504
            each request with no-store is a fetch
            an invalidated response does not satisfy only-if-cached
            """),
        Group(
            "answers to `Authorization` are stored and shared like others (§3.5: MUST NOT)",
            """
            Authorization and Expires: not stored
            Authorization and proxy-revalidate: not stored
            Authorization: not stored
            each of simultaneous requests with Authorization is a fetch
            """),
        Group(
            "unsafe methods invalidate nothing (§4.4: MUST)",
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
            "directives are found as substrings, without quoting, and to the second; `must-understand` is not known (§5.2)",
            """
            Expires equal to Date
            Expires in another time zone is no date
            Expires in small letters
            a 304 with Cache-Control: max-age=100, no-cache ends reuse
            a 304 with Cache-Control: max-age=100, private ends reuse
            a 304 with Vary: * ends reuse
            a directive in a quoted string is ignored
            a name that begins like a directive is another directive
            a quoted argument
            an escaped quote ends no string
            max-age twice, the first shorter
            max-age=1 ends after a second
            must-understand prevents storing an unknown status
            must-understand overrides no-store if the status is understood
            s-maxage takes precedence over a longer max-age
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
            "ranges are only served where the origin says `Accept-Ranges` (RFC 9110 §14.2: MAY); on a miss `Range` is not sent on, so a 206 is unexpected",
            """
            If-Range with the exact date
            If-Range with the strong tag
            a 206 to no Range is not stored as a full response
            a Range miss on an origin that ignores Range stores the full response
            a body cut off is completed by a range
            a body cut off that has changed is fetched again
            a range of a response in flight
            a range of a body cut off is served
            bytes=-0 cannot be satisfied
            bytes=-3
            bytes=-99
            bytes=0-4
            bytes=0-99999999999999999999
            bytes=20-
            bytes=25-99
            bytes=26-30 cannot be satisfied
            bytes=5-5
            bytes=99- cannot be satisfied
            near ranges are joined to one
            one satisfiable range of two
            overlapping ranges are joined to one
            two ranges are two parts
            """),
        Group(
            "`If-Match` and `If-Unmodified-Since` are answered from the store (§4.3.2: MUST NOT); `If-Modified-Since` is compared for equality; a 304 keeps fields of the content",
            """
            If-Match is for the origin
            If-Modified-Since is compared with Date if there is no Last-Modified
            If-Modified-Since: Wed, 02 Jan 2019 00:00:00 GMT of a stored response is 304
            If-Unmodified-Since is for the origin
            a 304 from the store has Age, Date and Cache-Control and no content fields
            a 404 to a client's If-Match is not shared either
            a 412 to the client's If-Match is not shared
            a 412 to the client's If-Unmodified-Since is not shared
            """),
        Group(
            "what is stale on arrival, or says `no-cache`, is not stored, so there is nothing to validate (§3: MAY)",
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
            a 304 replaces all lines of a field
            a 304 that says no-store ends reuse
            a 304 to a request without condition is not stored
            a 304 updates and adds fields
            a 304 with another strong tag freshens no response
            a 304 with private= removes the named fields
            a 304's Content-Range is not stored
            a 304's Set-Cookie does not go to the waiters
            a 304's Set-Cookie is not stored
            a 304's fields for one hop are not stored
            a 400 on validation is sent to the client
            a 404 on validation is sent to the client
            a 410 on validation is sent to the client
            a HEAD's no-cache ends reuse
            a full response replaces the stored one
            a failed refresh leaves the stored response
            a stale response is validated by its tag
            a validated response is a 304 to a client that has the response
            a validation is one fetch for all waiters
            a weak tag confirms the request's own variant, not a newer one with the same tag
            a weak tag is sent unchanged
            both validators are sent
            max-age without argument makes the response stale
            max-age= makes the response stale
            max-age=-1 makes the response stale
            max-age=0 is one fetch for all waiters
            max-age=0x64 makes the response stale
            max-age=1.5 makes the response stale
            max-age=100s makes the response stale
            max-age=1e3 makes the response stale
            max-age=abc makes the response stale
            max-stale does not override no-cache
            no heuristic lifetime beside max-age=0
            no-cache is validated each time
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
            "clients wait for one another only where the answer turns out to be stored, and fetch one by one otherwise (§4: MAY)",
            """
            a response without lifetime is one fetch for all waiters
            an error is one fetch for all waiters
            """),
        Group(
            "`Proxy-*`, `Trailer`, `Upgrade` and what `Connection` names go on (RFC 9110 §7.6.1: MUST NOT)",
            """
            Proxy-Authenticate is for one hop
            Proxy-Authentication-Info is for one hop
            Proxy-Connection is for one hop
            TE is for one hop
            Trailer is for one hop
            Upgrade is for one hop
            a field that Connection names is for one hop
            a field that the request's Connection names is for one hop
            """),
        Group(
            "what came in chunks is served in chunks, and trailers are dropped",
            """
            a hit sends trailers to a client that takes them
            a chunked response is served with a length
            an old client gets a stored response with a length
            trailers go to a client that takes them
            """),
        Group(
            "an interim response hangs the request (RFC 9110 §15.2: MUST be parsed and forwarded)",
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
            "the host is compared with its port and case; `Vary` compares fields byte by byte, empty like absent, and knows no `*` in a list; one that forgot `Vary` hides one with it (§4.1: SHOULD NOT); the last to arrive goes before the most recent (§4: MUST)",
            """
            Vary: * among others
            another host is another response
            empty is not absent
            lines of the nominated field are combined
            a response with Vary is preferred to a newer one without
            the case of Accept-Encoding does not matter
            the most recent by Date, not by arrival
            """),
        Group(
            "HEAD fetches with GET, so it freshens nothing (§4.3.5: SHOULD)",
            """
            a HEAD response that agrees freshens the stored one
            a HEAD's no-store ends reuse
            a HEAD's private ends reuse
            """),
    ]
}
