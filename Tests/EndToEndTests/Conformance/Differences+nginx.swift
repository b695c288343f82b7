extension Differences {
    /// Found with nginx 1.22.
    static let nginx: [Group] = [
        Group(
            "targeted fields, cache groups and `No-Vary-Search` are not known (RFC 9213, RFC 9875)",
            """
            CDN-Cache-Control goes before Cache-Control
            CDN-Cache-Control goes before Expires
            CDN-Cache-Control that forbids
            CDN-Cache-Control: no-cache
            CDN-Cache-Control: private
            CDN-Cache-Control: s-maxage
            a duplicate key: the last
            a response of two groups goes with either
            a shorter CDN-Cache-Control
            a wrong type makes it stale
            an unsafe request invalidates the group of what it invalidates
            an unsafe request invalidates the groups it names
            equal names keep their order, also where that of different ones does not matter
            except=("a"): only that one matters
            except=(): no parameter matters
            key-order: the order of names does not matter
            no query is like one in which nothing matters
            params=("a"): that one does not matter
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
            a 304 with Age brings it along
            a 304 without lifetime leaves the old one, counted anew
            a 500 on validation is forwarded where stale is not allowed
            a 502 on validation is forwarded where stale is not allowed
            a 503 on validation is forwarded where stale is not allowed
            a 504 on validation is forwarded where stale is not allowed
            a client that limits the age does not get it stale
            a hit has Age
            a response slower than its lifetime is stale on arrival
            after a 5xx the stored response is still there
            max-stale does not go over must-revalidate
            max-stale does not go over proxy-revalidate
            max-stale does not go over s-maxage
            max-stale without room
            must-revalidate goes before stale-if-error
            must-revalidate goes before stale-while-revalidate
            must-revalidate is not served stale to a disconnected client
            must-revalidate is validated when stale
            no-cache goes before stale-if-error
            proxy-revalidate goes before stale-if-error
            proxy-revalidate is not served stale to a disconnected client
            s-maxage=10 goes before stale-if-error
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
            200 may be given a guessed lifetime
            203 may be given a guessed lifetime
            204 may be given a guessed lifetime
            300 may be given a guessed lifetime
            301 may be given a guessed lifetime
            308 may be given a guessed lifetime
            404 may be given a guessed lifetime
            405 may be given a guessed lifetime
            410 may be given a guessed lifetime
            501 may be given a guessed lifetime
            Last-Modified in the future
            Pragma: no-cache does not keep from guessing
            a page changed a minute ago is fresh for some seconds
            a page changed just now is not fresh by guess
            a query is no exception
            a tenth of the time since the change, over soon
            public lets a lifetime be guessed for any status
            """),
        Group(
            "`Cache-Control` and `Pragma` of clients are not read (§5.2.1: MAY); `only-if-cached` goes to the origin",
            """
            HEAD with another length makes it stale
            HEAD with another tag makes it stale
            Pragma: no-cache is no-cache
            a newer answer takes the place of the older
            a request with no-store keeps its conditions
            max-age younger than the response
            max-age=0 asks the origin after a second
            min-fresh beyond what is left
            no-cache asks conditionally where it can
            no-cache asks the origin
            no-store is not stored
            only-if-cached for HEAD
            only-if-cached, another variant stored: 504
            only-if-cached, nothing stored: 504
            only-if-cached, stored and stale: 504
            requests with no-store fetch each
            what is invalidated is not there for only-if-cached
            """),
        Group(
            "answers to `Authorization` are stored and shared like others (§3.5: MUST NOT)",
            """
            Authorization and Expires: not stored
            Authorization and proxy-revalidate: not stored
            Authorization: not stored
            those who come together with Authorization fetch each
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
            what is invalidated is not served stale
            who comes after the change does not join the fetch before it
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
            a directive in a quoted string is none
            a name that only begins like a directive
            a quoted argument
            an escaped quote ends no string
            max-age twice, the first shorter
            max-age=1 ends after a second
            must-understand keeps an unknown status out
            must-understand overrides no-store where the status is understood
            s-maxage goes before a longer max-age
            """),
        Group(
            "qualified `no-cache` and `private` forbid storing, and `Set-Cookie` always does (§5.2.2.4: MAY)",
            """
            Set-Cookie qualified away: stored without it
            Set-Cookie with public: stored with it
            no-cache= with fields: stored without them
            private= with fields: stored without them
            qualified fields go to the one who led, not to those who wait
            """),
        Group(
            "ranges are only served where the origin says `Accept-Ranges` (RFC 9110 §14.2: MAY); on a miss `Range` is not sent on, so a 206 is unexpected",
            """
            If-Range with the exact date
            If-Range with the strong tag
            a 206 to no Range is not stored as whole
            a Range miss on an origin that ignores Range stores the whole
            a body cut off is completed by a range
            a body cut off that has changed is fetched anew
            a range of what still arrives
            a range of what was cut off is served
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
            If-Modified-Since against Date where there is no Last-Modified
            If-Modified-Since: Wed, 02 Jan 2019 00:00:00 GMT of a stored response is 304
            If-Unmodified-Since is for the origin
            a 304 from the store has Age, Date and Cache-Control and no content fields
            a 404 to a client's If-Match is not for others either
            a 412 that the client's If-Match brought is not for others
            a 412 that the client's If-Unmodified-Since brought is not for others
            """),
        Group(
            "what is stale on arrival, or says `no-cache`, is not stored, so there is nothing to validate (§3: MAY)",
            """
            Expires in the past
            Expires that is empty is past
            Expires that is no date is past
            Expires: 0 is past, and leaves nothing to guess
            Last-Modified goes as it is
            Last-Modified validates
            a 302 on validation is the answer
            a 304 does not change Content-Length
            a 304 for a tag that the client does not have is the whole to it
            a 304 replaces all lines of a field
            a 304 that says no-store ends reuse
            a 304 to a request without condition is not stored
            a 304 updates and adds fields
            a 304 with another strong tag freshens nothing
            a 304 with private= takes those fields away
            a 304's Content-Range is not stored
            a 304's Set-Cookie is not for those who wait
            a 304's Set-Cookie is not stored
            a 304's fields for one hop are not stored
            a 400 on validation is the answer
            a 404 on validation is the answer
            a 410 on validation is the answer
            a HEAD's no-cache ends reuse
            a full answer takes the place of what was stored
            a refresh that fails leaves what is stored
            a stale response is validated by its tag
            a validated response is 304 to a client that has it
            a validation is one fetch for all who wait
            a weak tag confirms the request's own variant, not a newer one that has it too
            a weak tag goes as it is
            both validators are sent
            max-age without argument makes it stale
            max-age= makes it stale
            max-age=-1 makes it stale
            max-age=0 is one fetch for all who wait
            max-age=0x64 makes it stale
            max-age=1.5 makes it stale
            max-age=100s makes it stale
            max-age=1e3 makes it stale
            max-age=abc makes it stale
            max-stale does not go over no-cache
            no guess beside max-age=0
            no-cache is validated each time
            the client's tags are asked about too
            a 304 for a tag that only the client has goes to it as it is, and freshens nothing
            a weak tag of the client is asked about as it is
            the client's tag is compared weakly with that of the 304
            a client's weak tag that is weakly the stored one's is answered by that
            the client's * is not asked about, and any response is 304 to it
            the client's tags are not asked about where only a date is stored
            the client's date is not asked about, and met from what was validated
            the client's date does not stand in where only a tag is stored
            HEAD with a tag that only the client has
            variants validate with their own validators
            what a 304 names in private= is for the one that led
            """),
        Group(
            "clients wait for one another only where the answer turns out to be stored, and fetch one by one otherwise (§4: MAY)",
            """
            a response without lifetime is one fetch for all who wait
            an error is one fetch for all who wait
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
            what Connection names is for one hop
            what the request's Connection names is for one hop
            """),
        Group(
            "what came in chunks is served in chunks, and trailers are dropped",
            """
            a hit with trailers has them for who takes them
            an answer in chunks is served with a length
            an old client gets a stored answer with a length
            trailers go to a client that takes them
            """),
        Group(
            "an interim response hangs the request (RFC 9110 §15.2: MUST be parsed and forwarded)",
            """
            103 goes to the client
            a 100 that nobody asked for goes nowhere
            a client of HTTP/1.0 gets none
            an unknown one goes too
            several go in order
            they are not stored
            they go to all who wait
            """),
        Group(
            "the host is compared with its port and case; `Vary` compares fields byte by byte, empty like absent, and knows no `*` in a list; one that forgot `Vary` hides one with it (§4.1: SHOULD NOT); the last to arrive goes before the most recent (§4: MUST)",
            """
            Vary: * among others
            another host is another response
            empty is not absent
            lines of the nominated field are combined
            one with Vary goes before a newer one that forgot it
            the case of Accept-Encoding does not matter
            the most recent by Date, not by arrival
            """),
        Group(
            "HEAD fetches with GET, so it freshens nothing (§4.3.5: SHOULD)",
            """
            HEAD that agrees freshens what is stored
            a HEAD's no-store ends reuse
            a HEAD's private ends reuse
            """),
    ]
}
