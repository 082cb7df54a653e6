//! The authority of a URI: whether parsers read it alike, and the forms for comparing spellings.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::look::nfkc;
use crate::uri_text::{decoded, fold};

/// Schemes whose authority follows any number of slashes (WHATWG URL), with their default ports.
const NETWORK: [(&str, u16); 5] = [
    ("http", 80),
    ("https", 443),
    ("ws", 80),
    ("wss", 443),
    ("ftp", 21),
];
/// Characters that change the structure of a URI, or that some parsers refuse in a host.
const STRUCTURE: [char; 14] = [
    '/', '?', '#', '@', ':', '\\', '[', ']', '<', '>', '^', '|', '%', '\0',
];
/// The form of every name and address of the machine itself.
const LOCAL: &str = "localhost";

/// A URI, or a pattern for URIs, that has a scheme.
pub(crate) struct Split<'a> {
    /// The scheme without its colon.
    pub scheme: &'a str,
    /// What follows the colon.
    pub after: &'a str,
    /// The authority, and the text after it; `None` without an authority.
    pub authority: Option<(&'a str, &'a str)>,
}

impl<'a> Split<'a> {
    /// Splits a text; `None` if it has no scheme.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let (scheme, after) = text.split_once(':')?;
        let is_named = scheme.starts_with(|c: char| c.is_ascii_alphabetic());
        let mut rest = scheme.chars();
        if !is_named || !rest.all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c)) {
            return None;
        }
        let begin = after.trim_start_matches(['/', '\\']);
        let slashes = after.len() - begin.len();
        let has_authority = default_port(scheme).is_some() || slashes == 2;
        let end = begin.find(['/', '?', '#']).unwrap_or(begin.len());
        Some(Self {
            scheme,
            after,
            authority: has_authority.then(|| begin.split_at(end)),
        })
    }

    /// Returns the forms of the scheme and the authority, up to the path: with and without user information and port,
    /// and each name of the host. A literal pattern uses the first one.
    pub(crate) fn heads(&self) -> Vec<String> {
        let Some((authority, _)) = self.authority else {
            return Vec::new();
        };
        let scheme = self.scheme.to_ascii_lowercase();
        let (user, place) = match authority.rsplit_once('@') {
            Some((user, place)) => (Some(user), place),
            None => (None, authority),
        };
        let (host, port) = host_and_port(place);
        let port = port.filter(|port| Some(*port) != default_port(&scheme));
        let plain = |text: &str| fold(&decoded(text).unwrap_or_else(|| text.to_owned()));
        let mut hosts = host_forms(&plain(host));
        if scheme == "file" {
            // Some servers read the path alone.
            match hosts.iter().any(|host| host.is_empty() || host == LOCAL) {
                true => hosts.insert(0, String::new()),
                false => hosts.push(String::new()),
            }
        }
        let mut heads = Vec::new();
        let users = user.map(|user| format!("{}@", plain(user)));
        let ports = port.map(|port| format!(":{port}"));
        for user in [users.as_deref(), None] {
            for port in [ports.as_deref(), None] {
                for host in &hosts {
                    let head = match host.is_empty() {
                        true => format!("{scheme}:"),
                        false => {
                            let (user, port) = (user.unwrap_or_default(), port.unwrap_or_default());
                            format!("{scheme}:/{user}{host}{port}")
                        }
                    };
                    if !heads.contains(&head) {
                        heads.push(head);
                    }
                }
            }
        }
        heads
    }
}

/// The default port of a scheme whose servers are reached over the network.
pub(crate) fn default_port(scheme: &str) -> Option<u16> {
    let mut known = NETWORK.iter();
    let known = known.find(|(name, _)| name.eq_ignore_ascii_case(scheme));
    known.map(|(_, port)| *port)
}

/// Whether all parsers find the same host in a URI, if it has an authority. The URI is as it is written.
pub(crate) fn has_one_authority(uri: &str) -> bool {
    let text: String = uri.chars().filter(|c| !is_skipped(*c)).collect();
    let Some(split) = Split::parse(text.trim_start_matches(' ')) else {
        return true;
    };
    let Some((authority, _)) = split.authority else {
        return true;
    };
    let is_network = default_port(split.scheme).is_some();
    if !is_network && !split.after.starts_with("//") {
        return true;
    }
    // The end of such an authority depends on the parser.
    if authority.contains('\\') || authority.matches('@').count() > 1 {
        return false;
    }
    let (user, place) = match authority.split_once('@') {
        Some((user, place)) => (Some(user), place),
        None => (None, authority),
    };
    if let Some(inner) = place.strip_prefix('[') {
        return inner.split_once(']').is_some_and(|(address, port)| {
            address.parse::<Ipv6Addr>().is_ok() && (port.is_empty() || is_port(port))
        });
    }
    let (host, port) = place.split_at(place.find(':').unwrap_or(place.len()));
    if host.is_empty() {
        return user.is_none() && port.is_empty() && !is_network;
    }
    let Some(host) = decoded(host) else {
        return false;
    };
    let is_odd = |c: char| STRUCTURE.contains(&c) || c.is_control() || c == '\u{fffd}';
    let is_plain = !host.contains(is_odd) && !nfkc(&host).contains(is_odd);
    is_plain && (port.is_empty() || is_port(port)) && has_one_name(&host, is_network)
}

/// Whether parsers skip a character, wherever it is.
fn is_skipped(c: char) -> bool {
    c != '\0' && c.is_control()
}

/// Whether the text is a colon, optionally with a port after it.
fn is_port(text: &str) -> bool {
    let Some(port) = text.strip_prefix(':') else {
        return false;
    };
    port.is_empty()
        || (port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok())
}

/// Whether a host is an address, or a name that IDNA can read if it has to.
fn has_one_name(host: &str, is_network: bool) -> bool {
    let host = fold(host);
    let host = host.trim_end_matches('.');
    let last = host.rsplit('.').next().unwrap_or_default();
    let is_number = |text: &str| {
        let hex = text.strip_prefix("0x");
        let digits = hex.unwrap_or(text).bytes();
        let is_empty = text.is_empty();
        let mut digits = digits.map(|byte| (byte.is_ascii_digit(), byte.is_ascii_hexdigit()));
        !is_empty && digits.all(|(is_digit, is_hex)| is_digit || (hex.is_some() && is_hex))
    };
    if is_network && is_number(last) {
        return !addresses(host).is_empty();
    }
    let is_encoded = host.split('.').any(|label| label.starts_with("xn--"));
    let needs_idna = is_network || is_encoded || !host.is_ascii();
    !needs_idna || (!host.is_empty() && idna::domain_to_ascii(host).is_ok())
}

/// The host of an authority without user information, and its port.
fn host_and_port(place: &str) -> (&str, Option<u16>) {
    let end_of_address = place.find(']').map_or(0, |at| at + 1);
    match place[end_of_address..].rsplit_once(':') {
        Some((before, port)) if port.is_empty() || port.parse::<u16>().is_ok() => {
            (&place[..end_of_address + before.len()], port.parse().ok())
        }
        _ => (place, None),
    }
}

/// Returns the forms of a folded host. The first one is the form for comparing hosts.
fn host_forms(host: &str) -> Vec<String> {
    let name = host.trim_end_matches('.');
    let mut forms = Vec::new();
    let mut add = |form: String| {
        if !forms.contains(&form) {
            forms.push(form);
        }
    };
    let bracketed = name.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    let addresses = match bracketed.and_then(|it| it.parse::<Ipv6Addr>().ok()) {
        Some(address) => vec![IpAddr::V6(address).to_canonical()],
        None => addresses(name).into_iter().map(IpAddr::V4).collect(),
    };
    let is_own = |address: &IpAddr| match address {
        IpAddr::V4(address) => *address == Ipv4Addr::LOCALHOST || address.is_unspecified(),
        IpAddr::V6(address) => address.is_loopback() || address.is_unspecified(),
    };
    if name == LOCAL || addresses.iter().any(is_own) {
        add(LOCAL.to_owned());
    }
    for address in &addresses {
        add(match address {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => format!("[{address}]"),
        });
    }
    if addresses.is_empty() && (!name.is_ascii() || name.contains("xn--")) {
        let (unicode, outcome) = idna::domain_to_unicode(name);
        if outcome.is_ok() {
            add(fold(&unicode));
        }
        if let Ok(ascii) = idna::domain_to_ascii(name) {
            add(ascii);
        }
    }
    add(name.to_owned());
    add(host.to_owned());
    forms
}

/// Returns the addresses that programs may read in a host of one to four numbers: `inet_aton` reads a number with a
/// leading zero as octal, Java as decimal.
fn addresses(host: &str) -> Vec<Ipv4Addr> {
    let mut read = Vec::new();
    for has_octal in [true, false] {
        if let Some(address) = address(host, has_octal)
            && !read.contains(&address)
        {
            read.push(address);
        }
    }
    read
}

fn address(host: &str, has_octal: bool) -> Option<Ipv4Addr> {
    let numbers: Option<Vec<u64>> = host
        .split('.')
        .map(|text| {
            let (digits, radix) = match (text.strip_prefix("0x"), text.strip_prefix('0')) {
                (Some(""), _) => return Some(0),
                (Some(digits), _) => (digits, 16),
                (None, Some(digits)) if has_octal && !digits.is_empty() => (digits, 8),
                _ => (text, 10),
            };
            let is_number = digits.chars().all(|c| c.is_digit(radix));
            u64::from_str_radix(digits, radix)
                .ok()
                .filter(|_| is_number)
        })
        .collect();
    let numbers = numbers?;
    let (last, others) = numbers.split_last()?;
    let free = 4_usize.checked_sub(others.len()).filter(|free| *free > 0)?;
    if others.iter().any(|number| *number > 255) || *last >= 1 << (8 * free) {
        return None;
    }
    let mut bits = u32::try_from(*last).ok()?;
    for (number, shift) in others.iter().zip([24, 16, 8]) {
        bits |= u32::try_from(*number).ok()? << shift;
    }
    Some(Ipv4Addr::from_bits(bits))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heads(uri: &str) -> Vec<String> {
        let folded = fold(uri);
        Split::parse(&folded).expect("a scheme").heads()
    }

    #[test]
    fn hosts_that_are_one_machine_have_a_common_form() {
        for (form, uris) in [
            (
                "http:/localhost",
                vec![
                    "http://localhost./",
                    "http://127.1/",
                    "http://0x7f.1:80/",
                    "http://2130706433",
                    "http://017700000001/",
                    "HTTP:\\\\[::ffff:7f00:1]:080/",
                    "http:/[0:0::1]/",
                    "http:0.0.0.0",
                ],
            ),
            (
                "x:/bücher.example",
                vec![
                    "x://xn--bcher-kva.example/",
                    "x://BU\u{308}CHER\u{3002}example/",
                    "x://b%C3%BCcher\u{ff0e}ex\u{ad}ample./",
                    "x://user:word@bücher.example:99/",
                ],
            ),
            ("x:/strasse", vec!["x://straße/", "x://xn--strae-oqa/"]),
            (
                "file:",
                vec!["file://LOCALHOST/", "file://127.0.0.1/", "file://h/"],
            ),
            ("x:/177.0.0.1", vec!["x://0177.0.0.1", "x://177.0.1"]),
            ("x:/127.0.0.1", vec!["x://0177.0.0.1"]),
        ] {
            for uri in uris {
                assert!(
                    heads(uri).contains(&form.to_owned()),
                    "{uri}: {:?}",
                    heads(uri)
                );
            }
        }
        assert_eq!(heads("http://h:81/")[0], "http:/h:81");
        assert!(heads("x:a").is_empty() && heads("x:/a@b/").is_empty());
    }

    #[test]
    fn authority_that_parsers_read_differently_has_no_form() {
        for uri in [
            "x://a@b@c/",
            "x://docs%2Fprivate",
            "x://a%40docs/",
            "x://a\\@b/",
            "http:a@b@c",
            "x://docs:name/",
            "x://docs:65536/",
            "x://docs:1:2/",
            "x://[::1/",
            "x://[1]/",
            "x://[::1%25eth0]/",
            "x://:80/",
            "x://u@/",
            "x://a\u{ff0f}b/",
            "x://%ff/",
            "x://xn--\u{fc}/",
            "x://xn--a-ecp.ru/",
            "http://256.1.1.1/",
            "http://1.2.3.4.5/",
            "http:///",
        ] {
            assert!(!has_one_authority(uri), "{uri}");
        }
        for uri in [
            "x://docs/a@b@c",
            "x:///a@b@c",
            "x:a@b@c",
            "x:/a\\b",
            "x:\\\\a@b@c",
            "x://u:p@docs:80/",
            "x://my docs/",
            "x://my_docs./",
            "x://1.2.3.4.5/",
            "http://bücher.example:/",
            "http://[::1]:80",
            "urn:isbn:1",
            "a\\b@c@d",
            "",
        ] {
            assert!(has_one_authority(uri), "{uri}");
        }
    }
}
