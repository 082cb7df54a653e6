//! Puts a layer around a core, serves it over HTTP, and calls a tool through it. Run it with
//! `cargo build -p toolbox-mcp && cargo run --example embed`.

use std::error::Error;
use std::io::Write as _;

use mcp_broker::core::{
    Args, Broker, CallContext, Core, CoreError, Identity, Operation, Outcome, Request, RequestId,
    ResultForm, forward,
};
use mcp_broker::embed;
use tokio::net::TcpListener;

mcp_broker::include_catalog!();

/// Refuses callers without a credential.
#[derive(Clone, Debug)]
struct Members<B> {
    inner: B,
}

impl<B: Broker> Broker for Members<B> {
    forward!(
        inner: services, list, describe, search, look_up, items, tools, callable_tools, listed_items, health, close
    );

    async fn call(&self, request: Request) -> Result<Outcome, Box<CoreError>> {
        if !request.identity.is_authenticated() {
            let message = "calls need a credential";
            let error = CoreError::new(mcp_broker::core::CallCode::Forbidden, message);
            return Err(Box::new(error.maybe_executed(false)));
        }
        self.inner.call(request).await
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let core = Core::builder(&CATALOG)
        .build()
        .map_err(|problems| problems[0].message.clone())?;
    core.start();
    core.services().first_verdict().await;
    let broker = Members {
        inner: core.clone(),
    };

    // Clients reach the layer, and the core behind it.
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let server = tokio::spawn(embed::serve_http(broker.clone(), listener, Some("secret")));
    let mut out = std::io::stdout().lock();
    writeln!(out, "serving on {}", address.ip())?;

    let request = |identity| Request {
        identity,
        context: CallContext::new(
            RequestId::new(&["example"]),
            broker.services().memory().whole_account(),
            ResultForm::Verbatim,
        ),
        path: "/util/hash_text".into(),
        operation: Operation::CallTool(Args::Read {
            text: r#"{"text":"hello"}"#.into(),
            value: serde_json::json!({"text": "hello"}),
        }),
    };
    let refused = broker.call(request(Identity::anonymous())).await;
    writeln!(
        out,
        "without a credential: {}",
        refused.expect_err("it is refused").message
    )?;
    let outcome = broker.call(request(Identity::local())).await?;
    writeln!(
        out,
        "called {}: {} bytes",
        outcome.path,
        outcome.result.len()
    )?;

    core.services().drain().begin_draining();
    broker.close().await;
    core.services().drain().finish();
    server.await??;
    Ok(())
}
