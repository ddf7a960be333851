//! The principals of servers.

/// The principal of the service on a server that is given as `host:port`.
///
/// Without a realm the name ends with `@`: the client's realm is asked, and may refer to another one.
pub(super) fn of_server(service: &str, address: &str, realm: Option<&str>) -> String {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    // Key tables do not contain fully qualified names with a trailing dot.
    let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    let realm = realm.unwrap_or_default();
    format!("{}/{}@{}", literal(service), literal(&host), literal(realm))
}

/// Escapes the characters that would divide the name.
fn literal(part: &str) -> String {
    let mut literal = String::with_capacity(part.len());
    for c in part.chars() {
        if matches!(c, '/' | '@' | '\\') {
            literal.push('\\');
        }
        literal.push(c);
    }
    literal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn principal_uses_the_configured_host() {
        for (address, expected) in [
            ("zk1.example:2181", "zookeeper/zk1.example@"),
            ("ZK1.Example.:2181", "zookeeper/zk1.example@"),
            ("10.0.0.1:2181", "zookeeper/10.0.0.1@"),
            ("[fe80::1]:2181", "zookeeper/fe80::1@"),
        ] {
            assert_eq!(of_server("zookeeper", address, None), expected);
        }
        assert_eq!(of_server("zk", "a:1", Some("EXAMPLE")), "zk/a@EXAMPLE");
    }

    #[test]
    fn a_name_cannot_pass_for_two() {
        assert_eq!(of_server("a/b", "c\\d@E:1", Some("F/G@H")), "a\\/b/c\\\\d\\@e@F\\/G\\@H");
    }
}
