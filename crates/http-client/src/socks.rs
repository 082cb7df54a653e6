//! Connections through a SOCKS5 proxy.

use std::future::{Ready, ready};
use std::net::IpAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::Uri;
use http::uri::Scheme;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::SocksV5;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpStream, lookup_host};
use tower_service::Service;

use crate::BoxError;
use crate::proxy::{Proxy, ProxyKind};

type TcpIo = TokioIo<TcpStream>;

/// Connects through a SOCKS5 proxy.
#[derive(Clone)]
pub(crate) struct Socks {
    tcp: HttpConnector,
    proxy: Proxy,
}

impl Socks {
    pub(crate) const fn new(proxy: Proxy, tcp: HttpConnector) -> Self {
        Self { tcp, proxy }
    }

    async fn connect(mut self, destination: Uri) -> Result<TcpIo, BoxError> {
        let destination = self.named_for_proxy(&destination).await?;
        let stream = self.tcp.call(self.proxy.uri.clone()).await?;
        let mut handshake = SocksV5::new(self.proxy.uri.clone(), Connected(Some(stream)));
        if let Some((user, password)) = self.proxy.raw_auth() {
            handshake = handshake.with_auth(user.to_owned(), password.to_owned());
        }
        Ok(handshake.call(destination).await?)
    }

    /// Returns the URL that names the destination for the proxy, always with a port.
    async fn named_for_proxy(&self, destination: &Uri) -> Result<Uri, BoxError> {
        let host = destination.host().unwrap_or_default();
        let default = match destination.scheme() == Some(&Scheme::HTTPS) {
            true => 443,
            false => 80,
        };
        let port = destination.port_u16().unwrap_or(default);
        let is_address = host.starts_with('[') || host.parse::<IpAddr>().is_ok();
        let authority = match self.proxy.kind == ProxyKind::Socks5 && !is_address {
            true => {
                let found = lookup_host((host, port)).await;
                let address = found.ok().and_then(|mut found| found.next());
                let unknown =
                    "this machine cannot look up the host; with `socks5h://` the proxy looks it up";
                address.ok_or(unknown)?.to_string()
            }
            false => format!("{host}:{port}"),
        };
        Ok(Uri::try_from(format!("http://{authority}/"))?)
    }
}

/// A connection to the proxy.
struct Connected(Option<TcpIo>);

impl Service<Uri> for Connected {
    type Response = TcpIo;
    type Error = &'static str;
    type Future = Ready<Result<TcpIo, &'static str>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), &'static str>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        ready(self.0.take().ok_or("the connection was used"))
    }
}

impl Service<Uri> for Socks {
    type Response = TcpIo;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<TcpIo, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, destination: Uri) -> Self::Future {
        Box::pin(self.clone().connect(destination))
    }
}
