//! Reads the body of a request: checks its type before it is read, and its size while it is read.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use axum::body::{Body, HttpBody as _};
use axum::http::{HeaderMap, HeaderValue, header};
use broker_model::CallCode;
use bytes::{Bytes, BytesMut};

use super::respond::Refusal;
use broker_core::{Account, Charge, ChargeError, memory_error_for_request, reserve};

/// The usual type of a body.
const JSON_TYPE: &str = "application/json";
/// Maximum time until a body has arrived.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum time and number of bytes that a refused body is still read, so that its sender can read the
/// reply instead of a reset.
const LINGER_TIMEOUT: Duration = Duration::from_secs(1);
const MAX_LINGER_BYTES: usize = 16 << 20;

/// Checks the type of a body, then reads it. A body of another type is left.
#[inline]
pub(crate) async fn take(
    headers: &HeaderMap,
    body: &mut Option<Body>,
    limit: usize,
    account: &Account,
) -> Result<Bytes, Refusal> {
    check_type(headers)?;
    read(body, limit, account).await
}

/// Refuses a body that is not plain JSON. A form or `text/plain` post of a browser needs no preflight,
/// so this is also the defence against cross-site posts.
fn check_type(headers: &HeaderMap) -> Result<(), Refusal> {
    let refuse = |message| Err(Refusal::new(CallCode::ContentType, message));
    let mut types = headers.get_all(header::CONTENT_TYPE).iter();
    let json = match (types.next(), types.next()) {
        (Some(value), None) => value == JSON_TYPE || value.to_str().is_ok_and(is_json),
        _ => false,
    };
    if !json {
        return refuse("the body must be `application/json` in UTF-8");
    }
    let is_encoding = |value: &HeaderValue| {
        let name = value.as_bytes().trim_ascii();
        !name.eq_ignore_ascii_case(b"identity")
    };
    let mut encodings = headers.get_all(header::CONTENT_ENCODING).iter();
    if encodings.any(is_encoding) {
        return refuse("the body must not be compressed");
    }
    Ok(())
}

fn is_json(value: &str) -> bool {
    let mut parts = value.split(';').map(str::trim);
    let media = parts.next().unwrap_or_default();
    media.eq_ignore_ascii_case("application/json")
        && parts.all(|parameter| match parameter.split_once('=') {
            Some((name, charset)) if name.trim().eq_ignore_ascii_case("charset") => charset
                .trim()
                .trim_matches('"')
                .eq_ignore_ascii_case("utf-8"),
            _ => true,
        })
}

/// Reads the complete body, at most `limit` bytes. The bytes are charged to `account` from their
/// arrival until they are dropped. A body announced as larger is not read and stays in `body`, for
/// [`linger`].
#[inline]
async fn read(body: &mut Option<Body>, limit: usize, account: &Account) -> Result<Bytes, Refusal> {
    let Some(taken) = body else {
        return Ok(Bytes::new());
    };
    let announced = usize::try_from(taken.size_hint().lower()).unwrap_or(usize::MAX);
    if announced > limit {
        return Err(too_large(limit));
    }
    if announced > account.request_limit() {
        return Err(charge_error(ChargeError::Caller, announced, account));
    }
    let bytes = within_time(collect(taken, limit, account)).await?;
    *body = None;
    Ok(bytes)
}

/// Waits until a body has arrived. Nearly every body has arrived with its head, and needs no timer.
async fn within_time(
    collecting: impl Future<Output = Result<Bytes, Refusal>>,
) -> Result<Bytes, Refusal> {
    let mut collecting = pin!(collecting);
    let arrived = poll_fn(|cx| Poll::Ready(collecting.as_mut().poll(cx))).await;
    match arrived {
        Poll::Ready(outcome) => outcome,
        Poll::Pending => match tokio::time::timeout(BODY_TIMEOUT, collecting).await {
            Ok(outcome) => outcome,
            Err(_) => Err(incomplete("the body did not arrive within 30 s")),
        },
    }
}

#[inline]
async fn collect(body: &mut Body, limit: usize, account: &Account) -> Result<Bytes, Refusal> {
    let mut charge = Charge::default();
    // Nearly every body is one frame. It is returned without a copy.
    let (mut first, mut joined) = (Bytes::new(), BytesMut::new());
    while let Some(chunk) = next_chunk(body).await {
        let chunk = chunk?;
        let held = first.len().max(joined.len());
        if chunk.len() > limit - held {
            return Err(too_large(limit));
        }
        let all = held + chunk.len();
        charge
            .cover(account, all)
            .map_err(|full| charge_error(full, all, account))?;
        if held == 0 {
            first = chunk;
        } else {
            if joined.is_empty() {
                joined.extend_from_slice(&std::mem::take(&mut first));
            }
            reserve(&mut joined, chunk.len());
            joined.extend_from_slice(&chunk);
        }
    }
    Ok(if joined.is_empty() {
        charge.hold(first)
    } else {
        charge.hold(joined)
    })
}

fn charge_error(charge_error: ChargeError, needed: usize, account: &Account) -> Refusal {
    Box::new(memory_error_for_request(charge_error, needed, account)).into()
}

#[inline]
async fn next_chunk(body: &mut Body) -> Option<Result<Bytes, Refusal>> {
    let frame = poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await?;
    Some(match frame {
        // Trailers are ignored.
        Ok(frame) => Ok(frame.into_data().unwrap_or_default()),
        Err(_) => Err(incomplete("the body broke off")),
    })
}

fn too_large(limit: usize) -> Refusal {
    Refusal::new(
        CallCode::BodyTooLarge,
        format!("the body is larger than {limit} bytes"),
    )
}

fn incomplete(message: &str) -> Refusal {
    Refusal::new(CallCode::JsonInvalid, message)
}

/// Reads the rest of a refused body in the background, within limits.
pub(crate) fn linger(mut body: Body) {
    tokio::spawn(async move {
        let drain = async {
            let mut left = MAX_LINGER_BYTES;
            while let Some(Ok(chunk)) = next_chunk(&mut body).await {
                match left.checked_sub(chunk.len()) {
                    Some(rest) => left = rest,
                    None => break,
                }
            }
        };
        // After the timeout the connection closes, as after the end of the body.
        drop(tokio::time::timeout(LINGER_TIMEOUT, drain).await);
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderName;
    use broker_core::MemoryBudget;

    fn check(headers: &[(HeaderName, &'static str)]) -> bool {
        let map: HeaderMap = headers
            .iter()
            .map(|(name, value)| (name.clone(), HeaderValue::from_static(value)))
            .collect();
        check_type(&map).is_ok()
    }

    #[test]
    fn body_of_another_type_or_encoding_is_refused() {
        for good in [
            "application/json",
            "Application/JSON; charset=UTF-8",
            "application/json;charset=\"utf-8\"",
            "application/json; profile=x",
        ] {
            assert!(check(&[(header::CONTENT_TYPE, good)]), "{good}");
        }
        for bad in [
            "",
            "text/plain",
            "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=x",
            "application/jsonp",
            "application/json, text/plain",
            "application/json; charset=latin1",
        ] {
            assert!(!check(&[(header::CONTENT_TYPE, bad)]), "{bad}");
        }
        assert!(!check(&[]));
        let json = (header::CONTENT_TYPE, "application/json");
        assert!(check(&[
            json.clone(),
            (header::CONTENT_ENCODING, "identity")
        ]));
        for encoding in ["gzip", "br", "identity, gzip", ""] {
            assert!(
                !check(&[json.clone(), (header::CONTENT_ENCODING, encoding)]),
                "{encoding}"
            );
        }
    }

    fn account(budget: usize) -> Account {
        MemoryBudget::new(budget).account()
    }

    #[tokio::test]
    async fn body_over_the_limit_is_refused() {
        let mut body = Some(Body::from("12345"));
        assert_eq!(
            read(&mut body, 4, &account(100)).await.unwrap_err().code(),
            CallCode::BodyTooLarge
        );
        assert!(body.is_some(), "left for lingering");
        assert_eq!(read(&mut body, 5, &account(100)).await.unwrap(), "12345");
        assert!(body.is_none());
    }

    #[tokio::test]
    async fn body_is_charged_while_it_is_read_and_until_its_drop() {
        let budget = MemoryBudget::new(4 << 20);
        let account = budget.account();
        let mut body = Some(Body::from(vec![b'x'; 1 << 20]));
        let read_whole = read(&mut body, 4 << 20, &account).await.unwrap();
        assert_eq!(budget.used(), 1 << 20);
        let mut another = Some(Body::from(vec![b'x'; 100_000]));
        let refusal = read(&mut another, 4 << 20, &account).await.unwrap_err();
        assert_eq!(
            refusal.code(),
            CallCode::Overloaded,
            "a caller has a quarter"
        );
        drop(read_whole);
        assert_eq!(budget.used(), 0);
    }

    #[tokio::test]
    async fn body_over_a_quarter_of_the_memory_is_refused_with_both_figures() {
        let mut body = Some(Body::from(vec![b'x'; 100_000]));
        let refusal = read(&mut body, 4 << 20, &account(200_000))
            .await
            .unwrap_err();
        assert_eq!(refusal.code(), CallCode::BodyTooLarge);
        let details = refusal.error().details.clone().unwrap();
        assert_eq!(
            (&details["needed_bytes"], &details["limit_bytes"]),
            (&100_000.into(), &50_000.into())
        );
    }
}
