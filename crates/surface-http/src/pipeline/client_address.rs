//! The address of a caller behind proxies, from `Forwarded` (RFC 7239) or `X-Forwarded-For`.

use std::net::{IpAddr, SocketAddr};

use axum::http::{HeaderMap, HeaderName, header};
use broker_model::address::AddressRange;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
/// The maximum number of addresses that are read, from the nearest on.
const MAX_HOPS: usize = 32;

/// Returns the address of the caller: the peer's address, or, if the peer is a trusted proxy, the nearest address in
/// its header that is not one of a trusted proxy. An address that cannot be read ends the search at the proxy that
/// wrote it. If both headers are present and differ, a client wrote one of them, and neither is believed.
pub(crate) fn client_address(
    peer: IpAddr,
    headers: &HeaderMap,
    trusted: &[AddressRange],
) -> IpAddr {
    let is_trusted = |address: IpAddr| trusted.iter().any(|range| range.contains(address));
    let mut nearest = peer.to_canonical();
    if !is_trusted(nearest) {
        return nearest;
    }
    let Some(mut hops) = forwarded(headers) else {
        return nearest;
    };
    hops.truncate(MAX_HOPS);
    for hop in hops {
        let Some(address) = hop else {
            return nearest;
        };
        nearest = address.to_canonical();
        if !is_trusted(nearest) {
            return nearest;
        }
    }
    nearest
}

/// The addresses of the headers, the nearest first; an inner `None` for one that cannot be read. `None` if the headers
/// differ.
fn forwarded(headers: &HeaderMap) -> Option<Vec<Option<IpAddr>>> {
    let listed = |name: &HeaderName| -> Vec<String> {
        let values = headers.get_all(name).iter();
        let texts = values.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
        let items: Vec<String> = texts
            .flat_map(|text| text.split(',').map(str::to_owned).collect::<Vec<_>>())
            .collect();
        items.into_iter().rev().collect()
    };
    let standard: Vec<_> = listed(&header::FORWARDED)
        .iter()
        .map(|element| element.split(';').find_map(for_parameter).and_then(address))
        .collect();
    let common: Vec<_> = listed(&X_FORWARDED_FOR)
        .iter()
        .map(|item| address(item))
        .collect();
    match (standard.is_empty(), common.is_empty()) {
        (true, _) => Some(common),
        (false, true) => Some(standard),
        (false, false) => (standard == common).then_some(standard),
    }
}

/// The value of `for=…`.
fn for_parameter(pair: &str) -> Option<&str> {
    let (name, value) = pair.split_once('=')?;
    name.trim()
        .eq_ignore_ascii_case("for")
        .then(|| value.trim().trim_matches('"'))
}

/// An address, with or without a port. IPv6 addresses with a port are in brackets.
fn address(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    let bare = text.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    let plain = bare.unwrap_or(text).parse().ok();
    plain.or_else(|| text.parse().ok().map(|address: SocketAddr| address.ip()))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn address_of_a_caller_is_believed_from_trusted_proxies_only() {
        let trusted = ["10.0.0.0/8", "::1"].map(|text| AddressRange::parse(text).unwrap());
        let mut both = HeaderMap::new();
        both.insert("forwarded", HeaderValue::from_static("for=203.0.113.9"));
        both.insert("x-forwarded-for", HeaderValue::from_static("192.0.2.1"));
        let peer = "10.0.0.1".parse().unwrap();
        assert_eq!(client_address(peer, &both, &trusted), peer);
        let address = |peer: &str, name: &'static str, value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(name, HeaderValue::from_static(value));
            client_address(peer.parse().unwrap(), &headers, &trusted).to_string()
        };
        for (peer, name, value, expected) in [
            ("192.0.2.9", "x-forwarded-for", "192.0.2.1", "192.0.2.9"),
            ("10.0.0.1", "x-forwarded-for", "192.0.2.1", "192.0.2.1"),
            (
                "10.0.0.1",
                "x-forwarded-for",
                "6.6.6.6, 192.0.2.1, 10.1.1.1",
                "192.0.2.1",
            ),
            ("10.0.0.1", "x-forwarded-for", "10.1.1.1", "10.1.1.1"),
            ("10.0.0.1", "x-forwarded-for", "unknown", "10.0.0.1"),
            ("10.0.0.1", "host", "x", "10.0.0.1"),
            (
                "::1",
                "forwarded",
                "for=192.0.2.1;proto=https, For=\"[2001:db8::1]:4711\"",
                "2001:db8::1",
            ),
            ("::1", "forwarded", "for=_hidden", "::1"),
            (
                "::ffff:10.0.0.1",
                "forwarded",
                "for=192.0.2.7:80",
                "192.0.2.7",
            ),
        ] {
            assert_eq!(
                address(peer, name, value),
                expected,
                "{peer} {name}: {value}"
            );
        }
    }
}
