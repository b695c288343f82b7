extension Differences {
    /// Found with Varnish 7.1.
    static let varnish: [Group] = [
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
            "apparent age and response delay do not count; `Expires` is compared with the own clock (§4.2.3)",
            """
            Date further back than the lifetime
            Date in the past is apparent age
            Expires is compared with Date, not with our clock
            a response slower than its lifetime is stale on arrival
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
            HEAD with another length makes it stale
            HEAD with another tag makes it stale
            Pragma: no-cache is no-cache
            a client that limits the age does not get it stale
            a newer answer takes the place of the older
            a request with no-store keeps its conditions
            directives of the request go on
            max-age younger than the response
            max-age=0 asks the origin after a second
            max-stale does not go over must-revalidate
            max-stale does not go over no-cache
            max-stale does not go over proxy-revalidate
            max-stale does not go over s-maxage
            max-stale with room
            max-stale without room
            min-fresh beyond what is left
            no-cache asks conditionally where it can
            no-cache asks the origin
            no-store is not stored
            only-if-cached for HEAD
            only-if-cached with max-stale, stored and stale
            only-if-cached, another variant stored: 504
            only-if-cached, nothing stored: 504
            only-if-cached, stored and stale: 504
            requests with no-store fetch each
            stale-if-error of the request
            what is invalidated is not there for only-if-cached
            """),
        Group(
            "requests with `Authorization` or `Cookie` go past the cache, whatever the answer allows",
            """
            Authorization and must-revalidate, max-age=100: for everybody
            Authorization and public, max-age=100: for everybody
            Authorization and s-maxage=100: for everybody
            cookies are not in the key
            what was stored without Authorization serves with it
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
            what is invalidated is not served stale
            who comes after the change does not join the fetch before it
            """),
        Group(
            "directives are found without regard to quoting, dates by case; malformed lifetimes are none; `must-understand` is not known (§5.2, §5.3)",
            """
            Expires in small letters
            a directive in a quoted string is none
            a name that only begins like a directive
            a quoted argument
            an escaped quote ends no string
            max-age without argument makes it stale
            max-age= makes it stale
            max-age=-1 makes it stale
            max-age=0x64 makes it stale
            max-age=1.5 makes it stale
            max-age=100s makes it stale
            max-age=1e3 makes it stale
            max-age=abc makes it stale
            must-understand overrides no-store where the status is understood
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
            "wrong, unknown and multiple ranges are 416 instead of ignored or served; HEAD has ranges (RFC 9110 §14.2: MUST ignore); on a miss `Range` is not sent on, and a 206 is an error",
            """
            HEAD has no ranges
            a 206 to no Range is not stored as whole
            a body cut off is completed by a range
            a body cut off that has changed is fetched anew
            a range of what was cut off is served
            bytes 0-4 is ignored
            bytes is ignored
            bytes= is ignored
            bytes=0-4;5-6 is ignored
            bytes=0-99999999999999999999
            bytes=1 is ignored
            bytes=4-2 is ignored
            bytes=a-b is ignored
            near ranges are joined to one
            of a fetch for the request alone the answer passes as it is
            one satisfiable range of two
            overlapping ranges are joined to one
            pages=1-2 is ignored
            too many ranges get the whole
            two ranges are two parts
            """),
        Group(
            "a body cut off may end as an error; answers with trailers always do",
            """
            a hit with trailers has them for who takes them
            a body cut off without a strong tag is not kept
            an answer cut off by length is cut off, and not stored
            an answer cut off in a chunk is cut off, and not stored
            trailers do not go to a client that does not
            trailers go to a client that takes them
            """),
        Group(
            "an interim response ends the fetch with an error (RFC 9110 §15.2: MUST be parsed and forwarded)",
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
            "the host is compared with its port; `Vary` compares fields byte by byte, after joining lines of any, and knows no `*` in a list; one that forgot `Vary` hides one with it (§4.1: SHOULD NOT); the last to arrive goes before the most recent (§4: MUST)",
            """
            Vary: * among others
            a comma matters in what is not known to be a list
            another host is another response
            lines of the nominated field are combined
            one with Vary goes before a newer one that forgot it
            the most recent by Date, not by arrival
            """),
        Group(
            "`If-Match` and `If-Unmodified-Since` are answered from the store (§4.3.2: MUST NOT); `If-None-Match` is not read as a list (RFC 9110 §13.1.2); only `Last-Modified` is compared; a 304 keeps fields of the content",
            """
            If-Match is for the origin
            If-Modified-Since against Date where there is no Last-Modified
            If-None-Match goes before Range
            If-None-Match: "x", "a" of a stored response is 304
            If-None-Match: * of a stored response is 304
            If-Unmodified-Since is for the origin
            a 304 from the store has Age, Date and Cache-Control and no content fields
            a 404 to a client's If-Match is not for others either
            """),
        Group(
            "what is stale on arrival is not stored, so there is nothing to validate or to serve stale (§3: MAY); a 304 to a request without condition is an error",
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
            a 304 renews the age
            a 304 replaces all lines of a field
            a 304 that says no-store ends reuse
            a 304 to a request without condition is not stored
            a 304 updates and adds fields
            a 304 with Age brings it along
            a 304 with another strong tag freshens nothing
            a 304 with private= takes those fields away
            a 304 without lifetime leaves the old one, counted anew
            a 304's Content-Range is not stored
            a 304's Set-Cookie is not for those who wait
            a 304's Set-Cookie is not stored
            a 304's fields for one hop are not stored
            a 400 on validation is the answer
            a 404 on validation is the answer
            a 410 on validation is the answer
            a 500 on validation is forwarded where stale is not allowed
            a 502 on validation is forwarded where stale is not allowed
            a 503 on validation is forwarded where stale is not allowed
            a 504 on validation is forwarded where stale is not allowed
            a full answer takes the place of what was stored
            a refresh that fails leaves what is stored
            a stale response is validated by its tag
            a validated response is 304 to a client that has it
            a validation is one fetch for all who wait
            a weak tag confirms the request's own variant, not a newer one that has it too
            a weak tag goes as it is
            after a 5xx the stored response is still there
            both validators are sent
            disconnected: stale is served though nobody said so
            max-age=0 is one fetch for all who wait
            must-revalidate goes before stale-if-error
            must-revalidate goes before stale-while-revalidate
            must-revalidate is not served stale to a disconnected client
            no guess beside max-age=0
            no-cache goes before stale-if-error
            no-cache is not served stale to a disconnected client
            no-cache is validated each time
            proxy-revalidate goes before stale-if-error
            proxy-revalidate is not served stale to a disconnected client
            s-maxage=10 goes before stale-if-error
            s-maxage=10 is not served stale to a disconnected client
            stale-if-error covers a 500
            stale-if-error covers a 502
            stale-if-error covers a 503
            stale-if-error covers a 504
            stale-if-error covers a connection that ends
            stale-while-revalidate serves at once and refreshes
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
            "what may not be stored is never shared with those who wait (§4: MAY)",
            """
            a response without lifetime is one fetch for all who wait
            an error is one fetch for all who wait
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
            HEAD that agrees freshens what is stored
            a HEAD's Set-Cookie is not stored
            """),
    ]
}
