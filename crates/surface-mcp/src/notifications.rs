//! The notifications of a call on their way to its caller: each event of the call as a message, before the
//! answer of the call.

use std::pin::Pin;

use broker_wire::write::{self, Outgoing, push_string};
use tokio::sync::mpsc;

use super::reply::Answer;
use broker_core::{CallEvent, Identity, LogMessage, Progress, ReceivedEvents};

pub(super) const PROGRESS: &str = "notifications/progress";
pub(super) const MESSAGE: &str = "notifications/message";
/// The announcement that the tool list has changed.
pub(super) const TOOLS_CHANGED: &str = "notifications/tools/list_changed";

/// The maximum number of events of one call that wait to become messages: as many as a call gets in a second.
pub(super) const MAX_WAITING_EVENTS: usize = 50;

/// Runs a call, and sends its events to `messages` before it returns. If `messages` has no room for an event, the event
/// is dropped, so that a caller that does not read delays no call. A caller that loses the right to call gets no
/// further one. The call stays where it is pinned, since an `async fn` would hold it twice: as its argument and as its
/// variable.
pub(super) async fn run_with_events(
    mut call: Pin<&mut impl Future<Output = Answer>>,
    mut events: ReceivedEvents,
    (identity, token): (&Identity, Option<&str>),
    messages: &mpsc::Sender<Outgoing>,
) -> Answer {
    let pass_on = |event: &CallEvent| {
        if !identity.is_revoked() {
            send(event, token, messages);
        }
    };
    let answer = loop {
        tokio::select! {
            biased;
            event = events.recv() => pass_on(&event),
            answer = call.as_mut() => break answer,
        }
    };
    while let Some(event) = events.try_recv() {
        pass_on(&event);
    }
    answer
}

fn send(event: &CallEvent, token: Option<&str>, messages: &mpsc::Sender<Outgoing>) {
    let message = match (event, token) {
        (CallEvent::Progress(event), Some(token)) => progress(event, token),
        (CallEvent::Progress(_), None) => return,
        (CallEvent::Log(event), _) => log(event),
        // Events of jobs have them.
        (CallEvent::Stderr(_), _) => return,
    };
    if messages.try_send(message).is_err() {
        tracing::trace!("an event of a call was dropped: its caller is gone or does not read");
    }
}

/// `notifications/progress` with the token of the caller, a JSON string or integer.
fn progress(event: &Progress, token: &str) -> Outgoing {
    let mut params = format!(r#"{{"progressToken":{token},"progress":{}"#, event.progress);
    if let Some(total) = &event.total {
        params.push_str(&format!(r#","total":{total}"#));
    }
    let mut params = params.into_bytes();
    if let Some(message) = &event.message {
        params.extend_from_slice(br#","message":"#);
        push_string(&mut params, message);
    }
    params.push(b'}');
    write::notification(PROGRESS, Some(&String::from_utf8_lossy(&params)))
}

/// `notifications/message`.
fn log(event: &LogMessage) -> Outgoing {
    let mut params = format!(r#"{{"level":"{}""#, event.level.as_str()).into_bytes();
    if let Some(logger) = &event.logger {
        params.extend_from_slice(br#","logger":"#);
        push_string(&mut params, logger);
    }
    params.extend_from_slice(br#","data":"#);
    params.extend_from_slice(event.data.get().as_bytes());
    params.push(b'}');
    write::notification(MESSAGE, Some(&String::from_utf8_lossy(&params)))
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::time::Duration;

    use broker_core::{CallEvents, WantedEvents};
    use tokio::time::sleep;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn call_ends_though_its_caller_reads_no_event() {
        const EVENTS: usize = 1_000;
        let wants = WantedEvents {
            progress: true,
            log: None,
        };
        let (sink, events) = CallEvents::new(MAX_WAITING_EVENTS, wants);
        let call = pin!(async move {
            for progress in 0..EVENTS {
                let progress = serde_json::from_str(&format!("{{\"progress\":{progress}}}"));
                assert!(sink.pass(|| CallEvent::Progress(progress.unwrap())));
                // The clock is paused. After this time another event is within the rate, and this one was passed on.
                sleep(Duration::from_millis(20)).await;
            }
            Ok(b"{}".to_vec().into())
        });
        let (messages, mut unread) = mpsc::channel(4);
        let answer =
            run_with_events(call, events, (&Identity::local(), Some("1")), &messages).await;
        assert!(answer.is_ok());
        drop(messages);
        let mut waiting = 0;
        while unread.recv().await.is_some() {
            waiting += 1;
        }
        assert_eq!(waiting, 4, "the others are dropped");
    }
}
