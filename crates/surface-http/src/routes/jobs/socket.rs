//! The events of a job over WebSocket: the checks before the upgrade, and the frames, one for each event.

use std::pin::pin;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderValue, Response};
use broker_core::{Broker, CoreError};
use broker_model::CallCode;
use broker_surface_mcp::http::{PushFrame, PushSocket};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::sync::mpsc;

use super::super::table::Route;
use super::super::websocket::{self, Offer, OtherCredentials};
use super::feed::{Feed, Kinds};
use super::query::Query;
use super::{job_id, jobs_are_off};
use crate::HttpSurface;
use crate::listener::Caller;
use crate::pipeline::{Refusal, respond};
use broker_surface::CallerShare;

/// The number of frames that wait for a slow reader. The events stay in the store meanwhile.
const MAX_WAITING: usize = 2;

/// A request that passed its checks.
enum Checked {
    /// It does not ask for an upgrade.
    NotAsked,
    /// The connection becomes the stream.
    Upgrade {
        key: HeaderValue,
        offer: Offer,
        upgrade: OnUpgrade,
        feed: Box<Feed>,
        socket: Box<PushSocket>,
    },
}

/// Answers the request for an upgrade; the events are sent once the connection is upgraded.
pub(in super::super) async fn handle(
    surface: &HttpSurface<impl Broker>,
    route: Route,
    request: Request,
    caller: &Caller,
) -> Response<Body> {
    let request_id = surface.ids.next();
    let (mut parts, body) = request.into_parts();
    let credentials = websocket::take_key(&mut parts);
    let mut body = Some(body);
    let checked = {
        let checking = pin!(check(
            surface,
            route,
            (&mut parts, &mut body),
            credentials,
            caller
        ));
        surface.contain(request_id, checking).await
    };
    let close = surface.must_close(body, caller);
    let settings = surface.settings.load();
    let common = surface.common_headers(&settings);
    let refused = |refusal| respond::respond(Err(refusal), &common, request_id, close);
    match checked {
        Ok(Checked::Upgrade {
            key,
            offer,
            upgrade,
            feed,
            socket,
        }) => {
            caller.upgrades.spawn(serve(upgrade, *feed, *socket));
            let (mut head, _) = websocket::switching(key, &offer).into_parts();
            common.add_to(&mut head.headers, request_id, false);
            Response::from_parts(head, Body::empty())
        }
        Ok(Checked::NotAsked) => {
            let refusal = Refusal::new(CallCode::HeaderInvalid, websocket::UPGRADE_MESSAGE);
            let mut response = refused(refusal);
            websocket::require_upgrade(&mut response);
            response
        }
        Err(refusal) => refused(refusal),
    }
}

async fn check(
    surface: &HttpSurface<impl Broker>,
    route: Route,
    (parts, body): (&mut Parts, &mut Option<Body>),
    credentials: OtherCredentials,
    caller: &Caller,
) -> Result<Checked, Refusal> {
    let settings = surface.settings.load_full();
    surface.check_hosts(&settings, parts)?;
    surface.check_route(route, &settings)?;
    let offer = websocket::read_offer(surface, parts, credentials)?;
    let (admitted, _) = surface
        .check_caller(route.row, parts, body, (caller, &settings))
        .await?;
    offer.check_place(&admitted.identity)?;
    let desk = surface.broker.jobs().ok_or_else(jobs_are_off)?;
    let query = Query::read(parts.uri.query());
    let feed = Feed {
        desk: Arc::clone(desk),
        identity: admitted.identity.clone(),
        account: admitted.account.clone(),
        id: job_id(parts.uri.path()).to_owned(),
        after: query.number("after", u64::MAX)?.unwrap_or_default(),
        kinds: Kinds::read(&query)?,
    };
    // An unknown job has an error in place of a connection.
    let may_be_read = desk.events_may_be_read(&feed.identity, &feed.id).await;
    may_be_read.map_err(|error| Refusal::from(error).for_caller(&feed.identity))?;
    let Some(key) = websocket::accept_key(parts) else {
        return Ok(Checked::NotAsked);
    };
    let Some(upgrade) = parts.extensions.remove::<OnUpgrade>() else {
        return Ok(Checked::NotAsked);
    };
    let share = CallerShare::new(&feed.identity, admitted.address);
    let socket = PushSocket {
        drain: surface.drain.clone(),
        right_ended: Box::pin({
            let services = surface.broker.services().clone();
            async move { services.right_ended(&admitted.identity).await }
        }),
        account: admitted.account,
        state: caller.stream(),
        owned: Box::new(surface.job_streams.open(share)?),
    };
    Ok(Checked::Upgrade {
        key,
        offer,
        upgrade,
        feed: Box::new(feed),
        socket: Box::new(socket),
    })
}

async fn serve(upgrade: OnUpgrade, feed: Feed, socket: PushSocket) {
    let upgraded = match upgrade.await {
        Ok(upgraded) => upgraded,
        Err(error) => return tracing::debug!(%error, "a connection was not upgraded"),
    };
    let (output, frames) = mpsc::channel(MAX_WAITING);
    let served = socket.serve(TokioIo::new(upgraded), frames);
    // The end of the connection ends the channel, and so the events.
    tokio::join!(write_events(feed, output), served);
}

/// Sends the events of a job until its end, or until the connection has ended.
async fn write_events(mut feed: Feed, output: mpsc::Sender<PushFrame>) {
    let sent = tokio::select! {
        sent = send_events(&mut feed, &output) => sent,
        () = output.closed() => return,
    };
    if let Err(error) = sent {
        let text = json!({ "error": error.members(None) }).to_string();
        // The client may have left.
        drop(output.send(PushFrame::Failed(text.into())).await);
    }
}

async fn send_events(
    feed: &mut Feed,
    output: &mpsc::Sender<PushFrame>,
) -> Result<(), Box<CoreError>> {
    loop {
        let batch = feed.next().await?;
        for event in &batch.events {
            let (number, kind) = (event.number, event.kind.as_str());
            let text = format!(
                r#"{{"seq":{number},"kind":"{kind}","data":{}}}"#,
                event.body
            );
            let frame = PushFrame::Next(feed.charged(text)?);
            if output.send(frame).await.is_err() {
                return Ok(());
            }
        }
        if batch.is_end {
            return Ok(());
        }
    }
}
