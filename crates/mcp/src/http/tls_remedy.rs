//! Remedies for the reasons of failed TLS connections: alerts of the server, and refusals of its certificate.

/// The words of a reason, and the remedy. The words are the names that the TLS library gives to alerts and errors.
const REMEDIES: [(&[&str], &str); 8] = [
    (
        &["CertificateRequired"],
        "The server requires a certificate of the client: name it in `client_cert`, and its key in `client_key`.",
    ),
    (
        &["alert: CertificateExpired", "alert: CertificateRevoked"],
        "The server refuses the certificate of the client, since it has expired or was revoked: renew the files of `client_cert` and `client_key`.",
    ),
    (
        &[
            "alert: BadCertificate",
            "alert: UnsupportedCertificate",
            "alert: CertificateUnknown",
            "alert: UnknownCA",
            "alert: AccessDenied",
            "alert: DecryptError",
        ],
        "The server does not accept the certificate of the client: `client_cert` must be issued by an authority that the server trusts, with its intermediate certificates in the same file, and `client_key` must be its key.",
    ),
    (
        &["alert: HandshakeFailure", "alert: InsufficientSecurity"],
        "The server and the broker have no cipher in common, or the server requires a certificate of the client (`client_cert`, `client_key`).",
    ),
    (
        &["alert: ProtocolVersion", "PeerIncompatible"],
        "The server offers only versions of TLS that the broker does not speak: enable TLS 1.2 or 1.3 there.",
    ),
    (
        &[
            "alert: UnrecognisedName",
            "NotValidForName",
            "not valid for name",
        ],
        "The server has no certificate for the host of `url`: write the name that its certificate has.",
    ),
    (
        &["alert: NoApplicationProtocol"],
        "The server does not speak HTTP/1.1 there: enable it, or name another port in `url`.",
    ),
    (
        &["InvalidContentType", "corrupt message"],
        "The server does not speak TLS at this port: write `http://`, or name the port of TLS in `url`.",
    ),
];

/// Returns the remedy for the reason in the message of a failed TLS connection, if it is a known one.
pub(crate) fn tls_remedy(message: &str) -> Option<&'static str> {
    if message.contains("`client_cert`") || message.contains("`client_key`") {
        return Some(
            "Correct the files of `client_cert` and `client_key`: a certificate with its chain and its unencrypted key in PEM form, the key with mode 0600.",
        );
    }
    let mut remedies = REMEDIES.iter();
    let found = remedies.find(|(words, _)| words.iter().any(|word| message.contains(word)));
    found.map(|(_, remedy)| *remedy)
}

#[cfg(test)]
mod tests {
    use rustls::{AlertDescription, CertificateError, Error, InvalidMessage};

    use super::*;

    #[test]
    fn reason_of_the_library_has_the_remedy_that_fits() {
        for (error, part) in [
            (
                Error::AlertReceived(AlertDescription::CertificateRequired),
                "requires a certificate of the client: name it",
            ),
            (
                Error::AlertReceived(AlertDescription::CertificateExpired),
                "renew the files",
            ),
            (
                Error::AlertReceived(AlertDescription::UnknownCA),
                "authority that the server trusts",
            ),
            (
                Error::AlertReceived(AlertDescription::BadCertificate),
                "authority that the server trusts",
            ),
            (
                Error::AlertReceived(AlertDescription::HandshakeFailure),
                "cipher in common",
            ),
            (
                Error::AlertReceived(AlertDescription::ProtocolVersion),
                "TLS 1.2 or 1.3",
            ),
            (
                Error::AlertReceived(AlertDescription::UnrecognisedName),
                "the host of `url`",
            ),
            (
                Error::AlertReceived(AlertDescription::NoApplicationProtocol),
                "HTTP/1.1",
            ),
            (
                Error::InvalidCertificate(CertificateError::NotValidForName),
                "the host of `url`",
            ),
            (
                Error::InvalidMessage(InvalidMessage::InvalidContentType),
                "write `http://`",
            ),
        ] {
            let message = format!("the TLS connection to `https://h/` failed: {error}");
            let remedy = tls_remedy(&message).unwrap_or_else(|| panic!("{message}"));
            assert!(remedy.contains(part), "{message}: {remedy}");
        }
        let unknown = Error::InvalidCertificate(CertificateError::UnknownIssuer);
        assert_eq!(tls_remedy(&unknown.to_string()), None);
        let expired = Error::InvalidCertificate(CertificateError::Expired);
        assert_eq!(
            tls_remedy(&expired.to_string()),
            None,
            "the server's certificate"
        );
    }
}
