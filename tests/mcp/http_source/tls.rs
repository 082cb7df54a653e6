//! Servers with TLS: which certificates are accepted, and that nothing is sent to the others.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use broker_mcp::{
    AuthSpec, ClientCertificate, ClientCredentials, Endpoint, HttpClient, Session, SourceSpec,
};
use broker_model::SourceCause;
use broker_model::redact::Secret;
use broker_model::url::HttpUrl;
use harness::{Chaos, ChaosServer, TlsFront, certificate};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::{HttpFixture, NAME, echo, spec_of};

/// A source behind this TLS front, whose `ca_file` is one of the tests' certificates.
fn behind(front: &TlsFront, host: &str, ca_file: Option<&str>) -> SourceSpec {
    let port = front.address.rsplit(':').next().unwrap_or_default();
    let mut spec = spec_of(&format!("https://{host}:{port}/mcp"));
    if let Endpoint::Http(http) = &mut spec.endpoint {
        http.ca_file = ca_file.map(certificate);
    }
    spec
}

#[tokio::test]
async fn tls_server_with_the_authority_in_ca_file_is_used() {
    for era in ["legacy", "modern"] {
        let fixture = HttpFixture::of_era(era, &json!({"reply": "sse"}));
        for (name, ca_file) in [
            ("trusted", "authority"),
            ("self-signed", "self-signed"),
            ("self-signed-ca", "self-signed-ca"),
            ("signing-server", "signing-server"),
        ] {
            let front = TlsFront::start(name, &fixture.server.address);
            for host in ["127.0.0.1", "localhost"] {
                let spec = behind(&front, host, Some(ca_file));
                let session = Session::open(&spec, None).await.unwrap();
                assert!(echo(&session, "x").await.unwrap().contains('x'));
                session.stop().await;
            }
            assert!(front.handshakes() >= 2);
        }
    }
}

#[tokio::test]
async fn tls_server_without_a_trusted_certificate_gets_no_request() {
    let fixture = HttpFixture::of_era("both", &json!({}));
    for (name, ca_file, part) in [
        ("trusted", None, "UnknownIssuer"),
        ("self-signed", None, "UnknownIssuer"),
        ("self-signed", Some("authority"), "UnknownIssuer"),
        ("other-name", Some("authority"), "other.example"),
        ("expired", Some("authority"), "expired"),
        ("self-signed-ca", None, "CaUsedAsEndEntity"),
        ("self-signed-ca", Some("self-signed"), "CaUsedAsEndEntity"),
        // The key of a server signs no other certificate, though the certificate is marked as an authority.
        ("signed-by-ca", Some("self-signed-ca"), "UnknownIssuer"),
        (
            "self-signed-expired",
            Some("self-signed-expired"),
            "expired",
        ),
        (
            "self-signed-other",
            Some("self-signed-other"),
            "other.example",
        ),
    ] {
        let front = TlsFront::start(name, &fixture.server.address);
        let opened = Session::open(&behind(&front, "localhost", ca_file), None).await;
        let failure = opened.expect_err("the certificate is refused");
        assert_eq!(failure.cause, SourceCause::TlsFailed, "{name}: {failure}");
        for part in ["the TLS connection to `https://localhost:", part] {
            assert!(failure.message.contains(part), "{name}: {failure}");
        }
        assert!(front.connections() >= 1);
        assert_eq!(front.handshakes(), 0, "{name}");
    }
    assert_eq!(fixture.requests(&json!({})), [] as [Value; 0]);
}

#[tokio::test]
async fn tls_to_a_server_without_it_and_the_reverse_are_distinguished() {
    let fixture = HttpFixture::of_era("both", &json!({}));
    // A server that answers whatever it reads.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let spec = spec_of(&format!("https://{}/mcp", listener.local_addr().unwrap()));
    let plain = tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let _ = client.read(&mut [0; 1024]).await;
            let _ = client.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        }
    });
    let failure = Session::open(&spec, None).await.unwrap_err();
    assert_eq!(failure.cause, SourceCause::TlsFailed, "{failure}");
    plain.abort();
    let front = TlsFront::start("trusted", &fixture.server.address);
    let spec = spec_of(&format!("http://{}/mcp", front.address));
    let failure = Session::open(&spec, None).await.unwrap_err();
    assert_eq!(failure.cause, SourceCause::Unreachable, "{failure}");
    assert_eq!(front.handshakes(), 0);
    assert_eq!(fixture.requests(&json!({})), [] as [Value; 0]);
}

#[tokio::test]
async fn tls_redirect_from_https_to_http_is_not_followed() {
    let chaos = Chaos::new();
    let plain = ChaosServer::start(&chaos, NAME);
    let target = json!({"Location": plain.url});
    let rules = json!([{"on": {}, "do": {"status": 308, "headers": target}}]);
    let fixture = HttpFixture::of_era("both", &json!({ "rules": rules }));
    let front = TlsFront::start("trusted", &fixture.server.address);
    let spec = behind(&front, "127.0.0.1", Some("authority"));
    let failure = Session::open(&spec, None).await.unwrap_err();
    let part = "only redirects within one origin are followed";
    assert!(failure.message.contains(part), "{failure}");
    assert_eq!(chaos.requests(NAME, &json!({})), [] as [Value; 0]);
}

#[tokio::test]
async fn ca_file_that_cannot_be_used_fails_the_start_and_names_it() {
    let chaos = Chaos::new();
    let fixture = HttpFixture::of_era("both", &json!({}));
    let front = TlsFront::start("trusted", &fixture.server.address);
    let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let missing = chaos.path().join("missing.pem");
    for file in [
        missing,
        chaos.file("empty.pem", ""),
        chaos.file("text.pem", "no certificate"),
        chaos.file("broken.pem", broken),
        certificate("key"),
        chaos.path().to_owned(),
    ] {
        let mut spec = behind(&front, "127.0.0.1", None);
        let Endpoint::Http(http) = &mut spec.endpoint else {
            panic!("it has a URL")
        };
        http.ca_file = Some(file.clone());
        let failure = Session::open(&spec, None).await.unwrap_err();
        assert_eq!(failure.cause, SourceCause::TlsFailed, "{file:?}: {failure}");
        assert!(failure.message.contains("`ca_file`"), "{failure}");
    }
    assert_eq!(front.connections(), 0);
}

#[tokio::test]
async fn tls_failure_of_the_public_client_has_a_kind() {
    let fixture = HttpFixture::of_era("both", &json!({}));
    let front = TlsFront::start("self-signed", &fixture.server.address);
    let client = HttpClient::new(&format!("https://{}", front.address), Some("canary")).unwrap();
    let error = client.initialize().await.unwrap_err();
    assert!(
        matches!(
            error.kind(),
            broker_mcp::ClientErrorKind::Unreachable { .. }
        ),
        "{error:?}"
    );
    assert_eq!(front.handshakes(), 0);
}

/// Writes the files of a client's certificate: one of the tests' certificates, and its key with this mode.
fn identity(folder: &Path, name: &str, mode: u32) -> ClientCertificate {
    let files = ClientCertificate {
        certificate: folder.join("client.pem"),
        key: folder.join("client.key"),
    };
    for (from, to, mode) in [(name, &files.certificate, 0o644), ("key", &files.key, mode)] {
        let draft = folder.join("draft");
        fs::copy(certificate(from), &draft).expect("the folder is writable");
        let mode = fs::Permissions::from_mode(mode);
        fs::set_permissions(&draft, mode).expect("the file is ours");
        fs::rename(&draft, to).expect("a rename within one folder");
    }
    files
}

/// A source that presents a certificate to the server behind this TLS front.
fn presenting(front: &TlsFront, identity: Option<ClientCertificate>) -> SourceSpec {
    let mut spec = behind(front, "127.0.0.1", Some("authority"));
    if let Endpoint::Http(http) = &mut spec.endpoint {
        http.identity = identity;
    }
    spec
}

#[tokio::test]
async fn client_certificate_is_presented_and_read_again_when_it_changes() {
    let chaos = Chaos::new();
    let fixture = HttpFixture::of_era("both", &json!({"reply": "json"}));
    let front = TlsFront::start_requiring("trusted", &fixture.server.address);
    let files = identity(chaos.path(), "trusted", 0o600);
    let session = Session::open(&presenting(&front, Some(files)), None).await;
    let session = session.unwrap();
    assert!(front.was_presented("trusted"));
    identity(chaos.path(), "other-name", 0o600);
    // Connections of the earlier certificate are closed when they are not used.
    let renewed = async {
        while !front.was_presented("other-name") {
            assert!(echo(&session, "x").await.unwrap().contains('x'));
            tokio::time::sleep(std::time::Duration::from_secs(5)).await;
        }
    };
    let renewed = tokio::time::timeout(super::WAIT_TIMEOUT, renewed).await;
    renewed.expect("the new certificate is presented");
    session.stop().await;
}

#[tokio::test]
async fn client_certificate_that_a_server_refuses_or_misses_has_the_help_that_fits() {
    let chaos = Chaos::new();
    let fixture = HttpFixture::of_era("both", &json!({}));
    let front = TlsFront::start_requiring("trusted", &fixture.server.address);
    for (name, mode, part, remedy) in [
        (None, 0, "CertificateRequired", "name it in `client_cert`"),
        (
            Some("expired"),
            0o600,
            "CertificateExpired",
            "renew the files",
        ),
        (
            Some("self-signed"),
            0o600,
            "UnknownCA",
            "authority that the server trusts",
        ),
        (Some("trusted"), 0o640, "has mode 0640", "with mode 0600"),
        (
            Some("authority"),
            0o600,
            "does not belong to the first certificate",
            "with mode 0600",
        ),
        (
            Some("key"),
            0o600,
            "`client_cert` has no certificate",
            "with mode 0600",
        ),
    ] {
        let files = name.map(|name| identity(chaos.path(), name, mode));
        let opened = Session::open(&presenting(&front, files), None).await;
        let failure = opened.expect_err("the server refuses it");
        assert_eq!(failure.cause, SourceCause::TlsFailed, "{name:?}: {failure}");
        assert!(failure.message.contains(part), "{name:?}: {failure}");
        assert!(
            failure.remedy().contains(remedy),
            "{name:?}: {}",
            failure.remedy()
        );
    }
    assert_eq!(front.handshakes(), 0);
    assert_eq!(fixture.requests(&json!({})), [] as [Value; 0]);
}

#[tokio::test]
async fn client_certificate_is_presented_to_the_token_endpoint_too() {
    let chaos = Chaos::new();
    let fixture = HttpFixture::of_era("both", &json!({}));
    let front = TlsFront::start_requiring("trusted", &fixture.server.address);
    for (files, cause) in [
        (None, SourceCause::TlsFailed),
        // The server behind the front grants no tokens.
        (
            Some(identity(chaos.path(), "trusted", 0o600)),
            SourceCause::NeedsAuth,
        ),
    ] {
        let mut spec = fixture.spec();
        let Endpoint::Http(http) = &mut spec.endpoint else {
            panic!("it has a URL")
        };
        (http.ca_file, http.identity) = (Some(certificate("authority")), files);
        let token_url = format!("https://{}/token", front.address);
        http.auth = Some(AuthSpec::ClientCredentials(ClientCredentials {
            token_url: HttpUrl::parse(&token_url).unwrap(),
            client_id: "c".to_owned(),
            client_secret: Secret::new("s3cret-of-the-client"),
            scope: None,
            resource: None,
        }));
        let failure = Session::open(&spec, None).await.unwrap_err();
        assert_eq!(failure.cause, cause, "{failure}");
    }
    assert!(front.was_presented("trusted"));
}
