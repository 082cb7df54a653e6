//! TLS in front of a server that has none: decrypts, and counts what clients send.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio_rustls::TlsAcceptor;

/// A listener with TLS at a free port of 127.0.0.1, which forwards to a server; closed when dropped.
#[derive(Debug)]
pub struct TlsFront {
    /// `127.0.0.1:PORT`.
    pub address: String,
    counts: Arc<Counts>,
    _stop: oneshot::Sender<()>,
}

#[derive(Debug, Default)]
struct Counts {
    connections: AtomicUsize,
    handshakes: AtomicUsize,
    /// The certificates that clients presented, in DER form.
    presented: Mutex<Vec<Vec<u8>>>,
}

/// A file of `certificates`: `authority` has issued `trusted`, `other-name` and `expired`. Those that begin with
/// `self-signed`, and `signing-server`, are their own issuers, and `self-signed-ca` has issued `signed-by-ca`.
pub fn certificate(name: &str) -> PathBuf {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/certificates"));
    folder.join(format!("{name}.pem"))
}

impl TlsFront {
    /// Forwards to the server at `backend` with this certificate.
    pub fn start(name: &str, backend: &str) -> Self {
        Self::start_with(name, backend, None)
    }

    /// Forwards like [`Self::start`], for clients with a certificate that `authority` has issued.
    pub fn start_requiring(name: &str, backend: &str) -> Self {
        let mut roots = RootCertStore::empty();
        let authority = CertificateDer::from_pem_file(certificate("authority"));
        let added = roots.add(authority.expect("a certificate"));
        added.expect("it is an authority");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
        let verifier = verifier.build().expect("it has an authority");
        Self::start_with(name, backend, Some(verifier))
    }

    fn start_with(name: &str, backend: &str, clients: Option<Arc<dyn ClientCertVerifier>>) -> Self {
        let chain = CertificateDer::from_pem_file(certificate(name));
        let key = PrivateKeyDer::from_pem_file(certificate("key"));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("the versions are supported");
        let config = match clients {
            Some(verifier) => config.with_client_cert_verifier(verifier),
            None => config.with_no_client_auth(),
        };
        let config = config.with_single_cert(
            vec![chain.expect("a certificate")],
            key.expect("a private key"),
        );
        let acceptor = TlsAcceptor::from(Arc::new(config.expect("they belong together")));
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        listener
            .set_nonblocking(true)
            .expect("it can be polled by the runtime");
        let address = listener.local_addr().expect("it has an address");
        let backend: SocketAddr = backend.parse().expect("an address");
        let counts = Arc::new(Counts::default());
        let (stop, stopped) = oneshot::channel();
        let counted = counts.clone();
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_io()
                .build();
            runtime.expect("a runtime").block_on(async {
                tokio::select! {
                    _ = stopped => {}
                    () = forward(listener, acceptor, backend, counted) => {}
                }
            });
        });
        Self {
            address: address.to_string(),
            counts,
            _stop: stop,
        }
    }

    /// The number of connections.
    pub fn connections(&self) -> usize {
        self.counts.connections.load(Ordering::SeqCst)
    }

    /// Whether the last client that presented a certificate had this one.
    pub fn was_presented(&self, name: &str) -> bool {
        let der = CertificateDer::from_pem_file(certificate(name)).expect("a certificate");
        let presented = self.counts.presented.lock().expect("not poisoned");
        presented.last().is_some_and(|last| *last == *der)
    }

    /// The number of connections whose TLS handshake succeeded, without which no request is read.
    pub fn handshakes(&self) -> usize {
        self.counts.handshakes.load(Ordering::SeqCst)
    }
}

async fn forward(
    listener: std::net::TcpListener,
    acceptor: TlsAcceptor,
    backend: SocketAddr,
    counts: Arc<Counts>,
) {
    let listener = TcpListener::from_std(listener).expect("the runtime polls it");
    while let Ok((stream, _)) = listener.accept().await {
        counts.connections.fetch_add(1, Ordering::SeqCst);
        let (acceptor, counts) = (acceptor.clone(), counts.clone());
        tokio::spawn(async move {
            let Ok(mut client) = acceptor.accept(stream).await else {
                return;
            };
            counts.handshakes.fetch_add(1, Ordering::SeqCst);
            if let Some([certificate, ..]) = client.get_ref().1.peer_certificates() {
                let mut presented = counts.presented.lock().expect("not poisoned");
                presented.push(certificate.to_vec());
            }
            if let Ok(mut server) = TcpStream::connect(backend).await {
                // Either side may end the connection.
                let _ = copy_bidirectional(&mut client, &mut server).await;
            }
        });
    }
}
