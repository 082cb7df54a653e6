//! The certificates of a file that a program trusts besides the system's certificates: authorities, and certificates
//! that servers signed themselves.
//!
//! An authority is trusted for every certificate that it signs. A certificate that names hosts and does not say that it
//! signs others is a server certificate: it is trusted for the server that presents it, byte for byte, and for no
//! certificate that its key signed. Only `webpki` reads certificates of peers; this reader gets the certificates of the
//! file.

use std::time::Duration;

use rustls::CertificateError;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, UnixTime};

const BOOLEAN: u8 = 0x01;
const BIT_STRING: u8 = 0x03;
const OBJECT_ID: u8 = 0x06;
const SEQUENCE: u8 = 0x30;
const UTC_TIME: u8 = 0x17;
const GENERAL_TIME: u8 = 0x18;
/// The tags of the version and of the extensions in a certificate.
const VERSION: u8 = 0xa0;
const EXTENSIONS: u8 = 0xa3;
/// The tags of a host and of an address in the names of a certificate.
const DNS_NAME: u8 = 0x82;
const IP_ADDRESS: u8 = 0x87;
/// Extensions: 2.5.29.15, 2.5.29.17, 2.5.29.19 and 2.5.29.37.
const KEY_USAGE: &[u8] = &[0x55, 0x1d, 15];
const ALTERNATIVE_NAMES: &[u8] = &[0x55, 0x1d, 17];
const BASIC_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 19];
const EXTENDED_KEY_USAGE: &[u8] = &[0x55, 0x1d, 37];
/// The purposes that a server needs: 1.3.6.1.5.5.7.3.1, or any (2.5.29.37.0).
const SERVER_PURPOSES: [&[u8]; 2] = [&[0x2b, 6, 1, 5, 5, 7, 3, 1], &[0x55, 0x1d, 37, 0]];
/// The bit of the key usage that permits to sign certificates.
const SIGNS_CERTIFICATES: u8 = 0x04;

/// A certificate that a client trusts.
pub type Certificate = CertificateDer<'static>;

/// Returns the certificates of a file in PEM form. The error says why they cannot be read.
pub fn certificates(pem: &[u8]) -> Result<Vec<Certificate>, &'static str> {
    CertificateDer::pem_slice_iter(pem)
        .map(|certificate| certificate.map_err(|_| "invalid certificate encoding"))
        .collect()
}

/// Returns the last second of the validity of a certificate, in Unix time; `None` if it cannot be read.
pub(crate) fn not_after(der: &[u8]) -> Option<u64> {
    Facts::read(der).map(|facts| facts.not_after)
}

/// The certificates of a file, by their use.
#[derive(Debug, Default)]
pub(crate) struct FileCertificates {
    /// Those that sign others.
    pub(crate) authorities: Vec<Certificate>,
    /// The server certificates.
    pub(crate) servers: Vec<ServerCertificate>,
}

impl FileCertificates {
    /// Sorts the certificates of a file. One that cannot be read counts as an authority. The TLS library then refuses
    /// it with its reason.
    pub(crate) fn sort(certificates: Vec<Certificate>) -> Self {
        let mut sorted = Self::default();
        for certificate in certificates {
            let Some(facts) = Facts::read(&certificate) else {
                sorted.authorities.push(certificate);
                continue;
            };
            if facts.is_of_server() {
                sorted.servers.push(ServerCertificate {
                    der: certificate.clone(),
                    not_before: facts.not_before,
                    not_after: facts.not_after,
                });
            }
            if facts.is_authority() {
                sorted.authorities.push(certificate);
            }
        }
        sorted
    }
}

/// A certificate that a server signed itself.
#[derive(Debug)]
pub(crate) struct ServerCertificate {
    pub(crate) der: Certificate,
    /// The first and the last second of its validity, in Unix time.
    not_before: u64,
    not_after: u64,
}

impl ServerCertificate {
    /// Whether it is valid at this time.
    pub(crate) fn check_time(&self, now: UnixTime) -> Result<(), CertificateError> {
        let at = |seconds| UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        if now.as_secs() < self.not_before {
            let not_before = at(self.not_before);
            return Err(CertificateError::NotValidYetContext {
                time: now,
                not_before,
            });
        }
        if now.as_secs() > self.not_after {
            let not_after = at(self.not_after);
            return Err(CertificateError::ExpiredContext {
                time: now,
                not_after,
            });
        }
        Ok(())
    }
}

/// The members of a certificate that decide about its use.
#[derive(Debug, Default)]
struct Facts {
    is_self_issued: bool,
    not_before: u64,
    not_after: u64,
    is_ca: bool,
    signs_certificates: bool,
    names_hosts: bool,
    /// Whether its purposes, if it names any, exclude servers.
    excludes_servers: bool,
}

impl Facts {
    /// Reads a certificate in DER form (RFC 5280); `None` if it is not one.
    fn read(der: &[u8]) -> Option<Self> {
        let (certificate, _) = value_of(SEQUENCE, der)?;
        let (body, _) = value_of(SEQUENCE, certificate)?;
        let after_version = match any_value(body)? {
            (VERSION, _, rest) => rest,
            _ => body,
        };
        let (_, _, rest) = any_value(after_version)?; // serial number
        let (_, rest) = value_of(SEQUENCE, rest)?; // algorithm
        let (issuer, rest) = value_of(SEQUENCE, rest)?;
        let (validity, rest) = value_of(SEQUENCE, rest)?;
        let (subject, rest) = value_of(SEQUENCE, rest)?;
        let (_, mut rest) = value_of(SEQUENCE, rest)?; // public key
        let (not_before, after) = time(validity)?;
        let (not_after, _) = time(after)?;
        let mut facts = Self {
            is_self_issued: issuer == subject,
            not_before,
            not_after,
            ..Self::default()
        };
        while let Some((tag, value, after)) = any_value(rest) {
            if tag == EXTENSIONS {
                facts.read_extensions(value_of(SEQUENCE, value)?.0)?;
            }
            rest = after;
        }
        Some(facts)
    }

    fn read_extensions(&mut self, mut list: &[u8]) -> Option<()> {
        while !list.is_empty() {
            let (extension, rest) = value_of(SEQUENCE, list)?;
            list = rest;
            let (id, after) = value_of(OBJECT_ID, extension)?;
            let after = match any_value(after)? {
                (BOOLEAN, _, rest) => rest,
                _ => after,
            };
            let (_, value, _) = any_value(after)?;
            self.read_extension(id, value)?;
        }
        Some(())
    }

    fn read_extension(&mut self, id: &[u8], value: &[u8]) -> Option<()> {
        if id == BASIC_CONSTRAINTS {
            let (members, _) = value_of(SEQUENCE, value)?;
            let is_ca = value_of(BOOLEAN, members);
            self.is_ca = is_ca.is_some_and(|(flag, _)| flag != [0]);
        } else if id == KEY_USAGE {
            let (bits, _) = value_of(BIT_STRING, value)?;
            let first = bits.get(1).copied().unwrap_or_default();
            self.signs_certificates = first & SIGNS_CERTIFICATES != 0;
        } else if id == ALTERNATIVE_NAMES {
            let names = values(value_of(SEQUENCE, value)?.0);
            let is_host = |(tag, _): &(u8, &[u8])| matches!(*tag, DNS_NAME | IP_ADDRESS);
            self.names_hosts = names.into_iter().any(|name| is_host(&name));
        } else if id == EXTENDED_KEY_USAGE {
            let purposes = values(value_of(SEQUENCE, value)?.0);
            let mut purposes = purposes.into_iter().map(|(_, purpose)| purpose);
            self.excludes_servers = !purposes.any(|one| SERVER_PURPOSES.contains(&one));
        }
        Some(())
    }

    /// Whether it is the certificate that a server signed itself.
    const fn is_of_server(&self) -> bool {
        self.is_self_issued && self.names_hosts && !self.excludes_servers
    }

    /// Whether it is trusted for certificates that it signed: it names no hosts, or it says that it signs others.
    const fn is_authority(&self) -> bool {
        !self.names_hosts || (self.is_ca && self.signs_certificates)
    }
}

/// Returns the tag and the content of the first value, and the rest.
fn any_value(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = der.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = if first < 0x80 {
        (usize::from(first), rest)
    } else {
        let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
        if digits.is_empty() || digits.len() > 4 {
            return None;
        }
        let fold = |length, digit: &u8| length << 8 | usize::from(*digit);
        (digits.iter().fold(0, fold), rest)
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((tag, content, rest))
}

/// Returns the content of the first value, and the rest. The value must have this tag.
fn value_of(tag: u8, der: &[u8]) -> Option<(&[u8], &[u8])> {
    let (found, content, rest) = any_value(der)?;
    (found == tag).then_some((content, rest))
}

/// Returns the values in a list, up to the first one that cannot be read.
fn values(mut list: &[u8]) -> Vec<(u8, &[u8])> {
    let mut values = Vec::new();
    while let Some((tag, value, rest)) = any_value(list) {
        values.push((tag, value));
        list = rest;
    }
    values
}

/// Returns the time at the start, in seconds of Unix time, and the rest.
fn time(der: &[u8]) -> Option<(u64, &[u8])> {
    let (tag, text, rest) = any_value(der)?;
    let text = std::str::from_utf8(text).ok()?;
    let (year, text) = match tag {
        UTC_TIME => {
            let year: u64 = text.get(..2)?.parse().ok()?;
            (year + if year < 50 { 2000 } else { 1900 }, text.get(2..)?)
        }
        GENERAL_TIME => (text.get(..4)?.parse().ok()?, text.get(4..)?),
        _ => return None,
    };
    let part = |at: usize| text.get(at..at + 2)?.parse::<u64>().ok();
    let (month, day) = (part(0)?, part(2)?);
    let (hour, minute, second) = (part(4)?, part(6)?, part(8)?);
    let is_date = (1..=12).contains(&month) && (1..=31).contains(&day) && year >= 1970;
    if !is_date || hour > 23 || minute > 59 || second > 60 || text.get(10..)? != "Z" {
        return None;
    }
    let seconds = days_since_1970(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second;
    Some((seconds, rest))
}

/// Returns the number of days from 1970-01-01 to a date of the Gregorian calendar.
const fn days_since_1970(year: u64, month: u64, day: u64) -> u64 {
    // Years begin in March here, so that the leap day is the last one.
    let (year, month) = match month {
        0..=2 => (year - 1, month + 9),
        _ => (year, month - 3),
    };
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    year * 365 + year / 4 - year / 100 + year / 400 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a certificate of the tests.
    fn named(name: &str) -> Certificate {
        let folder = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../tests/harness/certificates"
        );
        let pem = std::fs::read(format!("{folder}/{name}.pem")).unwrap();
        certificates(&pem).unwrap().remove(0)
    }

    #[test]
    fn certificate_of_a_file_is_of_a_server_or_an_authority() {
        for (name, is_authority, is_server) in [
            ("authority", true, false),
            ("trusted", false, false),
            ("self-signed", false, true),
            ("self-signed-ca", false, true),
            ("self-signed-expired", false, true),
            ("signing-server", true, true),
        ] {
            let sorted = FileCertificates::sort(vec![named(name)]);
            assert_eq!(!sorted.authorities.is_empty(), is_authority, "{name}");
            assert_eq!(!sorted.servers.is_empty(), is_server, "{name}");
        }
    }

    #[test]
    fn validity_of_a_certificate_is_read_to_the_second() {
        let at = |seconds| UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        let sorted = FileCertificates::sort(vec![named("self-signed-expired")]);
        let [expired] = &sorted.servers[..] else {
            panic!("one certificate of a server")
        };
        // From 2019-01-01 to 2020-01-01.
        assert!(expired.check_time(at(1_546_300_799)).is_err());
        assert!(expired.check_time(at(1_546_300_800)).is_ok());
        assert!(expired.check_time(at(1_577_836_800)).is_ok());
        assert!(expired.check_time(at(1_577_836_801)).is_err());
        // After 2050 the year has four digits.
        let sorted = FileCertificates::sort(vec![named("self-signed")]);
        assert_eq!(sorted.servers[0].not_after, 4_733_510_400);
        assert_eq!(days_since_1970(1970, 1, 1), 0);
        assert_eq!(days_since_1970(2000, 2, 29), 11_016);
    }

    #[test]
    fn certificate_that_is_cut_or_changed_never_panics() {
        let whole = named("self-signed-ca");
        for length in 0..whole.len() {
            let cut = Certificate::from(whole[..length].to_vec());
            assert!(
                FileCertificates::sort(vec![cut]).servers.is_empty(),
                "{length}"
            );
            for byte in [0, 0x30, 0x80, 0xff] {
                let mut changed = whole.to_vec();
                changed[length] = byte;
                let _ = Facts::read(&changed);
            }
        }
    }
}
