package import Bytes
package import TLS

/// What the TLS listeners have in common.
package struct TLSSettings: Sendable, Equatable {
    /// The certificates with their keys; the first one is for clients that ask for no name, or for an unknown one.
    package var identities: [TLSIdentity] = []
    /// Mozilla's intermediate configuration: older versions are broken.
    package var minimumVersion = TLSVersion.tls12
    /// Whether a handshake that asks for a name without certificate fails; otherwise it gets the first certificate.
    package var refusesUnknownNames = false
    /// The keys of session tickets, which several machines may share; `nil`: made here, and replaced regularly.
    package var ticketKeys: NamedFile?
    /// A folder of which only `.well-known/acme-challenge/` is served, on listeners without TLS.
    package var acmeChallenges: String?
    /// The authorities of clients' certificates.
    package var clientAuthorities: NamedFile?
    /// The field in requests to origins that names the subject of the client's certificate, in lower case; clients
    /// cannot set it. `nil`: none.
    package var clientSubjectField: String?

    package init() {}
}
