import Bytes
import CertificateMaking
import Configuration
import TLS
import Testing

/// Certificates that no listener can show. A start would fail with them.
@Suite struct `A certificate that cannot be shown` {
    private static let root = TestAuthority("Root")
    private static let issuing = root.intermediate("Issuing")
    private static let weak = root.intermediate("Weak", key: .shortRSA)
    private static let site = issuing.identity(for: "a.test")

    private static let shelf: Shelf = {
        var shelf = Shelf()
        shelf.add("good", site, issuers: issuing)
        shelf.add("short", root.identity(for: "a.test", key: .shortRSA))
        var traits = TestAuthority.Traits()
        traits.isSignedWeakly = true
        shelf.add("sha1", root.identity(for: "a.test", with: traits))
        shelf.add("chain", weak.identity(for: "a.test"), issuers: weak)
        shelf.texts["/turned.pem"] = String(issuing.file.content) + String(site.certificate.content)
        shelf.texts["/dsa.pem"] = dsaCertificate
        shelf.texts["/dsa.key"] = dsaKey
        return shelf
    }()

    @Test(arguments: [
        (
            "short", "short",
            "OpenSSL refuses it: its RSA key of 1024 bits is too small (ee key too small); have it issued for an RSA key of 2048 bits or more, or for an ECDSA key"
        ),
        (
            "sha1", "sha1",
            "OpenSSL refuses it: its signature is too weak (ca md too weak); have it issued again with SHA-256"
        ),
        (
            "chain", "chain",
            "OpenSSL refuses certificate 2 (CN=Weak): its RSA key of 1024 bits is too small (ca key too small); name a file without it, or have the first one issued by another authority"
        ),
        (
            "dsa", "dsa",
            "clients cannot use a key of its kind (DSA); have it issued for an ECDSA or RSA key"
        ),
        (
            "turned", "good",
            "the order in this file is wrong: the key belongs to certificate 2 (CN=a.test); put that one first, and its issuer after it"
        ),
    ])
    func `is a mistake at its place, wherever it is named`(_ name: String, _ key: String, _ mistake: String) throws {
        let identity = "{certificate: /\(name).pem, key: /\(key).key}"
        let message = "`certificate: /\(name).pem`: \(mistake)"
        let listen = "listen: https://0.0.0.0:443\n"
        #expect(
            Self.shelf.load("\(listen)tls: {certificates: [{certificate: /good.pem, key: /good.key},\n \(identity)]}\n")
                .mistakes == ["f:3:16: \(message)"])
        #expect(
            Self.shelf.load("upstreams: [{name: u, servers: https://u, tls: {client-certificate:\n \(identity)}}]\n")
                .mistakes == ["f:2:16: \(message)"])
        #expect(
            Self.shelf.load("\(listen)workers: 1", ["COALESCED_TLS_CERTIFICATES": identity]).mistakes
                == ["COALESCED_TLS_CERTIFICATES: \(message)"])
        var flags = Overrides()
        flags.listeners = [try ScalarSyntax.listener.value(of: "https://0.0.0.0:443")]
        flags.identity = TLSIdentity(
            certificate: NamedFile(path: "/\(name).pem"), key: NamedFile(path: "/\(key).key"))
        #expect(Self.shelf.loadWithoutFile([:], flags).mistakes == ["--tls-certificate: \(message)"])
    }

    @Test func `is not one with a chain of good certificates`() {
        #expect(
            Self.shelf.load(
                "listen: https://0.0.0.0:443\ntls: {certificates: {certificate: /good.pem, key: /good.key}}\n"
            ).mistakes == [])
    }

    @Test(arguments: [
        ("upstreams: [{name: u, servers: https://u, tls: {ca: ca.pem}}]\n", "/etc/ssl/ca.pem`"),
        ("tls: {client-ca: ca.pem}\n", "/etc/ssl/clients.pem`, or `none`"),
        ("tls: {certificates: {certificate: /good.pem, key: a.key}}\n", "/etc/ssl/site.key`"),
        ("tls: {ticket-keys: tickets}\n", "/etc/coalesced/tickets`, or `none`"),
    ])
    func `is named by a path from the root, of which the advice has a fitting one`(_ text: String, _ end: String) {
        let found = Self.shelf.load(text).mistakes
        #expect(
            found.count == 1 && found[0].hasSuffix("`: not understood; give a path such as `\(end)"), "\(found)")
    }

    /// OpenSSL takes a key of this kind, but no cipher that is allowed signs with it.
    private static let dsaCertificate = """
        -----BEGIN CERTIFICATE-----
        MIIEiDCCBCygAwIBAgIUdIoxM419pv0dKm05IpoH47cIErYwCwYJYIZIAWUDBAMC
        MBQxEjAQBgNVBAMMCWQuZXhhbXBsZTAgFw0yNjExMjcyMDQ2NTNaGA8yMTI2MTEw
        MzIwNDY1M1owFDESMBAGA1UEAwwJZC5leGFtcGxlMIIDRzCCAjkGByqGSM44BAEw
        ggIsAoIBAQCTYqTMXgjgD5uFQuBtdWLvw+XnjBJD5qKghl8xCAZXtF43OYaC/Ryc
        UNPL0DTabbmEoWSI1veL+3LLAxyHFZTT9AFlhWY2ZG6DbecLQo2dVwPfi5I/6Xt0
        Z7oPmulc2FQthUGPF89SIWlBVS32UWK/9G04HR4Sb/tfUgLPsqnzWIU6Oda/19DZ
        PBT5j45YSsklE2tqR7huA0qfGLddhrZ/Fu/b0KkqrMU9Yf7rlPFe6e6tBxDH0DIj
        sRzI91AgdWIiAoOCLCFiN1D8E8TVOAhy4e9RxisFobbzUfnAjuKn6MofYnLsS8y0
        QSKb2TA5NHi/x0RtiND73hVpbF+2wzjdAiEAv0tKyDDUGNopGKwgvz2RxWCgmvDQ
        vqupXtqa8pMqtmkCggEAHfMgRQ3Hun4mNzCCBsf15JZpilFDHhO7IcGGf6o3EO3E
        XlYtxLvGeG7eCXnocwSTwcSMo44ImA4o9mO0j7SaRlNesg2MMvDG49pFV8bvHekx
        4ibWZmvgoF8vn/uho/bFwke848ak43augkq+lq5R8NpiAgkUMQWBECFqm6FvK9jT
        y42gVzpeqqb501CIVyhPPAZ8AOflMvp2n+OUZ2QMOSb7gVCgLs7D5DVEPBoTkaCa
        hTVt7K8kRvNf2pbBPa+5KqdJgLXfbIkxYeF9sJyUexouwMdR/xk120HZprdjH+fK
        oFtyRpq4zNA95D7ho+jhaXLWj9Yy/T4Bde49mm8KIQOCAQYAAoIBAQCSQw3gm4zt
        mjQwKH5J9VzblVFUg3oEbGbMMhuzl0zWhb/ZRjBVE6Oyt7igyjgtoNXGI3TBmSyX
        gXcU0Q0VanANLMRbTtDivdZuHRPfdY62BRhnEdTgh1zWdfoLG6OyDpArYoCcfJds
        QcGdbTfMo5jDHj0MxT3qPYSYX1fOOKhFxXkkD2b3EdSjbNcO1ff2K2dMKG//Um+2
        TOGJarrN93F1/u57hpNbgttAshlwz4f7Lx3qwOMJUgeeRTfrkbNEUfr7WDaY0BJX
        7tqu1ftlw+fu17la1Mx095kQnw0IaVnW/nbVOPBNjiYd5rjIPPHiBWthiEDdFRxi
        pA9s9dSs8sp7o2kwZzAdBgNVHQ4EFgQUq8Hz1tDxfwsLHXMBb5DwxNxVaM0wHwYD
        VR0jBBgwFoAUq8Hz1tDxfwsLHXMBb5DwxNxVaM0wDwYDVR0TAQH/BAUwAwEB/zAU
        BgNVHREEDTALgglkLmV4YW1wbGUwCwYJYIZIAWUDBAMCA0kAMEYCIQC5A+Q/NNiw
        vdxKdgio7ajOQeKLhopf68W8wWQGVwesDQIhAKSlHcl1rDEPTFOKaFAryLqhO5Ta
        CQ6oIEMaJx/28+gI
        -----END CERTIFICATE-----

        """

    private static let dsaKey = """
        -----BEGIN PRIVATE KEY-----
        MIICZQIBADCCAjkGByqGSM44BAEwggIsAoIBAQCTYqTMXgjgD5uFQuBtdWLvw+Xn
        jBJD5qKghl8xCAZXtF43OYaC/RycUNPL0DTabbmEoWSI1veL+3LLAxyHFZTT9AFl
        hWY2ZG6DbecLQo2dVwPfi5I/6Xt0Z7oPmulc2FQthUGPF89SIWlBVS32UWK/9G04
        HR4Sb/tfUgLPsqnzWIU6Oda/19DZPBT5j45YSsklE2tqR7huA0qfGLddhrZ/Fu/b
        0KkqrMU9Yf7rlPFe6e6tBxDH0DIjsRzI91AgdWIiAoOCLCFiN1D8E8TVOAhy4e9R
        xisFobbzUfnAjuKn6MofYnLsS8y0QSKb2TA5NHi/x0RtiND73hVpbF+2wzjdAiEA
        v0tKyDDUGNopGKwgvz2RxWCgmvDQvqupXtqa8pMqtmkCggEAHfMgRQ3Hun4mNzCC
        Bsf15JZpilFDHhO7IcGGf6o3EO3EXlYtxLvGeG7eCXnocwSTwcSMo44ImA4o9mO0
        j7SaRlNesg2MMvDG49pFV8bvHekx4ibWZmvgoF8vn/uho/bFwke848ak43augkq+
        lq5R8NpiAgkUMQWBECFqm6FvK9jTy42gVzpeqqb501CIVyhPPAZ8AOflMvp2n+OU
        Z2QMOSb7gVCgLs7D5DVEPBoTkaCahTVt7K8kRvNf2pbBPa+5KqdJgLXfbIkxYeF9
        sJyUexouwMdR/xk120HZprdjH+fKoFtyRpq4zNA95D7ho+jhaXLWj9Yy/T4Bde49
        mm8KIQQjAiEAjLz/Xgzc5qi6weHS7JpIJdcH7k7nlT01nNXq1h2U2Cc=
        -----END PRIVATE KEY-----

        """
}
