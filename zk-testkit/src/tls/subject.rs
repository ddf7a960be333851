//! Whose certificate it is, as servers write that: `CN=client,O=Company`, the most special part first (RFC 2253).

/// The subject of a certificate in DER. `None`: it is no certificate.
pub(super) fn of(certificate: &[u8]) -> Option<String> {
    let (mut certificate, _) = element(certificate, SEQUENCE)?;
    let (mut content, _) = element(take(&mut certificate)?, SEQUENCE)?;
    if content.first() == Some(&VERSION) {
        take(&mut content)?;
    }
    // Serial number, algorithm, issuer, validity.
    for _ in 0..4 {
        take(&mut content)?;
    }
    let (mut names, _) = element(content, SEQUENCE)?;
    let mut parts = Vec::new();
    while !names.is_empty() {
        let (mut set, rest) = element(names, SET)?;
        let mut together = Vec::new();
        while !set.is_empty() {
            let (mut pair, rest) = element(set, SEQUENCE)?;
            let (kind, value) = (take(&mut pair)?, pair);
            let id = element(kind, OBJECT_ID)?.0;
            together.push(match name_of(id) {
                Some(name) => format!("{name}={}", text(value)?),
                None => format!("{}=#{}", dotted(id), hex(value)),
            });
            set = rest;
        }
        parts.push(together.join("+"));
        names = rest;
    }
    parts.reverse();
    Some(parts.join(","))
}

const OBJECT_ID: u8 = 0x06;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
/// In front of the serial number, from the second version on.
const VERSION: u8 = 0xA0;

/// What is in the first element, if it is of this kind, and what is behind it.
fn element(bytes: &[u8], kind: u8) -> Option<(&[u8], &[u8])> {
    let (header, len) = header(bytes)?;
    let content = bytes.get(header..)?;
    (bytes.first() == Some(&kind) && content.len() >= len).then(|| content.split_at(len))
}

/// Takes the first element, whatever it is, with its header.
fn take<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (header, len) = header(bytes)?;
    let (first, rest) = bytes.split_at_checked(header.checked_add(len)?)?;
    *bytes = rest;
    Some(first)
}

/// The lengths of the first element's header and content.
fn header(bytes: &[u8]) -> Option<(usize, usize)> {
    let short = *bytes.get(1)?;
    if short < 0x80 {
        return Some((2, short.into()));
    }
    let count = usize::from(short & 0x7F);
    let digits = bytes.get(2..count.checked_add(2)?).filter(|digits| digits.len() <= 4)?;
    let len = digits.iter().fold(0, |len, digit| len << 8 | usize::from(*digit));
    Some((2 + count, len))
}

/// Java's names for these, in this form. All others are written as numbers, with their values as they are encoded.
fn name_of(id: &[u8]) -> Option<&'static str> {
    Some(match id {
        [0x55, 0x04, 3] => "CN",
        [0x55, 0x04, 6] => "C",
        [0x55, 0x04, 7] => "L",
        [0x55, 0x04, 8] => "ST",
        [0x55, 0x04, 9] => "STREET",
        [0x55, 0x04, 10] => "O",
        [0x55, 0x04, 11] => "OU",
        [0x09, 0x92, 0x26, 0x89, 0x93, 0xF2, 0x2C, 0x64, 0x01, 25] => "DC",
        [0x09, 0x92, 0x26, 0x89, 0x93, 0xF2, 0x2C, 0x64, 0x01, 1] => "UID",
        _ => return None,
    })
}

fn dotted(id: &[u8]) -> String {
    let mut numbers: Vec<u64> = Vec::new();
    let mut number = 0;
    for byte in id {
        number = number << 7 | u64::from(byte & 0x7F);
        if byte & 0x80 == 0 {
            numbers.push(std::mem::take(&mut number));
        }
    }
    // The first two are in one.
    if let Some(first) = numbers.first().copied() {
        let high = (first / 40).min(2);
        numbers.splice(..1, [high, first - 40 * high]);
    }
    numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(".")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"))
}

/// A string's text, with marks in front of what has a meaning of its own there.
fn text(value: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(element(value, *value.first()?)?.0).into_owned();
    let mut escaped = String::new();
    let last = text.chars().count().saturating_sub(1);
    for (at, c) in text.chars().enumerate() {
        let at_edge = (c == ' ' && (at == 0 || at == last)) || (c == '#' && at == 0);
        if at_edge || matches!(c, ',' | '+' | '"' | '\\' | '<' | '>' | ';') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    Some(escaped)
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};

    use super::*;

    #[test]
    fn subjects_are_written_as_java_does() {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CountryName, "DE");
        params.distinguished_name.push(DnType::OrganizationName, "Ann, Bob");
        params.distinguished_name.push(DnType::CustomDnType(vec![1, 2, 840, 1]), "x");
        params.distinguished_name.push(DnType::CommonName, "client");
        let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        let subject = of(certificate.der()).unwrap();
        assert_eq!(subject, "CN=client,1.2.840.1=#0c0178,O=Ann\\, Bob,C=DE");
    }

    #[test]
    fn garbage_has_no_subject() {
        let certificate = CertificateParams::default().self_signed(&KeyPair::generate().unwrap());
        let der = certificate.unwrap().der().to_vec();
        // However it is cut off, nothing is made up and nothing breaks.
        for len in 0..60 {
            assert_eq!(of(&der[..len]), None, "{len}");
        }
        assert_eq!(of(&[0x30, 0x84, 0xFF, 0xFF, 0xFF, 0xFF, 0]), None);
    }
}
