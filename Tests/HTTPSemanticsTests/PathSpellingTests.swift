import Bytes
import HTTPSemantics
import Testing

/// The paths that origins may read in a path.
@Suite struct PathSpellingTests {
    @Test(arguments: [
        ("//w", ["/w", "//w"]), ("/./w", ["/w"]), ("/a/../w", ["/w"]), ("/%77", ["/w"]), ("/%57", ["/W"]),
        ("/w/", ["/w/"]), ("/a/..", ["/"]), ("/..", ["/"]), ("/../w", ["/w"]), ("/w/%2e%2E/x", ["/x"]), ("/.", ["/"]),
        ("/a//../w", ["/w", "/a/w"]), ("/%2fw", ["/%2Fw", "/w", "//w"]), ("/a%2Fb/../w", ["/w", "/a/w"]),
        ("/%2e/w", ["/w"]), ("/a%", ["/a%"]), ("/a%4", ["/a%4"]), ("/%zz", ["/%zz"]), ("/%2577", ["/%77"]),
        ("/%3f/../w", ["/w"]), ("/%00/../w", ["/w"]), ("/.w", ["/.w"]), ("/..w/...", ["/..w/..."]), ("/", ["/"]),
        ("", [""]), ("//", ["/", "//"]), ("/a/%2e.", ["/"]),
    ])
    func `each octet is decoded, dot segments are removed, and slashes may count`(_ path: String, _ readings: [String])
    {
        let found = PathSpelling.readings(of: ByteSlice(path).span).map { String($0) }
        #expect(found == readings)
    }

    @Test func `only a path with a percent sign, two slashes, or a dot behind a slash can be read otherwise`() {
        for path in ["", "/", "/w", "/w/x.html", "/a.b/c..d/", "/w;a=b", "/~a/b-c_d", "/w/x/"] {
            let bytes = ByteSlice(path)
            let isAmbiguous = PathSpelling.isAmbiguous(bytes.span)
            #expect(!isAmbiguous, "\(path)")
            #expect(PathSpelling.readings(of: bytes.span) == [bytes], "\(path)")
        }
        for path in ["//", "/w//", "/.", "/w/.x", "/w/..", "/%41", "/w%"] {
            let isAmbiguous = PathSpelling.isAmbiguous(ByteSlice(path).span)
            #expect(isAmbiguous, "\(path)")
        }
    }
}
