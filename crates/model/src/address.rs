//! Ranges of IP addresses: one address, or a network with its prefix length.

use std::fmt;
use std::net::IpAddr;

/// Bits of an IPv6 address that identify a caller.
const CALLER_IPV6_BITS: u8 = 64;

/// An address, or the addresses of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AddressRange {
    network: IpAddr,
    prefix: u8,
}

/// Why a text is not a range of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressRangeError {
    /// Not an address, or no valid prefix length after it.
    #[error("expected an IP address, or a network such as `192.0.2.0/24`")]
    Syntax,
    /// The prefix length 0.
    #[error("the range has every address")]
    All,
    /// Bits after the prefix are set.
    #[error("the network with this prefix length is `{0}`")]
    HostBits(AddressRange),
}

impl AddressRange {
    /// Reads `10.0.0.1`, `192.0.2.0/24`, `::1` or `2001:db8::/32`.
    ///
    /// # Errors
    ///
    /// Any [`AddressRangeError`].
    pub fn parse(text: &str) -> Result<Self, AddressRangeError> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| AddressRangeError::Syntax)?;
        let Some(prefix) = prefix else {
            return Ok(Self::one(address));
        };
        let is_number = prefix.bytes().all(|byte| byte.is_ascii_digit());
        let prefix: u8 = prefix
            .parse()
            .ok()
            .filter(|prefix| is_number && *prefix <= bits_of(address))
            .ok_or(AddressRangeError::Syntax)?;
        if prefix == 0 {
            return Err(AddressRangeError::All);
        }
        let network = masked(address, prefix);
        let range = Self { network, prefix };
        match network == address {
            true => Ok(range),
            false => Err(AddressRangeError::HostBits(range)),
        }
    }

    fn one(address: IpAddr) -> Self {
        let network = address.to_canonical();
        let prefix = bits_of(network);
        Self { network, prefix }
    }

    /// Whether an address is in the range. An IPv4 address that is written as IPv6 counts as IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        bits_of(address) == bits_of(self.network) && masked(address, self.prefix) == self.network
    }
}

impl fmt::Display for AddressRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.prefix == bits_of(self.network) {
            true => write!(f, "{}", self.network),
            false => write!(f, "{}/{}", self.network, self.prefix),
        }
    }
}

/// What identifies a caller by its address: an IPv4 address, or the network of an IPv6 address, since one customer has the
/// other bits.
pub fn caller_network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        v4 @ IpAddr::V4(_) => v4,
        v6 @ IpAddr::V6(_) => masked(v6, CALLER_IPV6_BITS),
    }
}

const fn bits_of(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

/// Returns the address with only its first `prefix` bits; the others are zero. `prefix` is at least one.
fn masked(address: IpAddr, prefix: u8) -> IpAddr {
    match address {
        IpAddr::V4(v4) => IpAddr::V4((v4.to_bits() & (u32::MAX << (32 - prefix))).into()),
        IpAddr::V6(v6) => IpAddr::V6((v6.to_bits() & (u128::MAX << (128 - prefix))).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_of_one_network_are_one_caller() {
        let network = |text: &str| caller_network(text.parse().unwrap()).to_string();
        assert_eq!(network("2001:db8::1:2:3:4"), "2001:db8::");
        assert_eq!(network("::ffff:10.0.0.1"), "10.0.0.1");
        assert_eq!(network("192.0.2.7"), "192.0.2.7");
    }

    #[test]
    fn address_range_contains_the_addresses_of_its_network() {
        for (range, address, is_inside) in [
            ("10.0.0.1", "10.0.0.1", true),
            ("10.0.0.1", "10.0.0.2", false),
            ("10.0.0.1", "::ffff:10.0.0.1", true),
            ("::ffff:10.0.0.1", "10.0.0.1", true),
            ("192.0.2.0/24", "192.0.2.255", true),
            ("192.0.2.0/24", "192.0.3.0", false),
            ("192.0.2.0/24", "::1", false),
            ("128.0.0.0/1", "255.0.0.1", true),
            ("::1", "::1", true),
            ("::1", "127.0.0.1", false),
            ("2001:db8::/32", "2001:db8:ffff::1", true),
            ("2001:db8::/32", "2001:db9::", false),
        ] {
            let read = AddressRange::parse(range).unwrap();
            assert_eq!(
                read.contains(address.parse().unwrap()),
                is_inside,
                "{range} {address}"
            );
        }
    }

    #[test]
    fn address_range_in_another_form_is_refused() {
        for text in [
            "",
            "a",
            "10.0.0",
            "10.0.0.0/33",
            "10.0.0.0/+8",
            "10.0.0.0/",
            "::1/129",
            "[::1]",
        ] {
            assert_eq!(
                AddressRange::parse(text),
                Err(AddressRangeError::Syntax),
                "{text}"
            );
        }
        assert_eq!(
            AddressRange::parse("0.0.0.0/0"),
            Err(AddressRangeError::All)
        );
        let error = AddressRange::parse("10.0.0.1/8").unwrap_err();
        assert_eq!(
            error.to_string(),
            "the network with this prefix length is `10.0.0.0/8`"
        );
    }
}
