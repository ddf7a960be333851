//! What no test can notice, and why: `equivalent.txt` has the name of each change, as cargo-mutants gives it but without
//! line and column, and the reason on the indented lines below.

use std::{collections::BTreeMap, fs, path::Path};

/// The reasons, by name.
pub(crate) fn read(root: &Path) -> Result<BTreeMap<String, String>, String> {
    let file = root.join("tests/mutants/equivalent.txt");
    parse(&fs::read_to_string(file).map_err(|error| error.to_string())?)
}

fn parse(text: &str) -> Result<BTreeMap<String, String>, String> {
    let mut reasons: BTreeMap<String, String> = BTreeMap::new();
    let mut names: Vec<String> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        match line.strip_prefix("    ") {
            None => {
                let has_reason = names.last().is_none_or(|name| reasons.contains_key(name));
                if !has_reason {
                    return Err(format!("no reason for {}", names.join(", ")));
                }
                names.push(line.to_owned());
            }
            Some(reason) => {
                let name = names.last().ok_or("a reason for nothing")?;
                let text = reasons.entry(name.clone()).or_default();
                text.push_str(if text.is_empty() { "" } else { " " });
                text.push_str(reason);
            }
        }
    }
    match names.last().filter(|name| !reasons.contains_key(*name)) {
        Some(name) => Err(format!("no reason for {name}")),
        None => Ok(reasons),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_equivalent_has_a_reason() {
        let text = "a.rs: replace it\n    It is\n    the same.\n\nb.rs: replace it\n    So.\n";
        let reasons = parse(text).unwrap();
        assert_eq!(reasons["a.rs: replace it"], "It is the same.");
        assert_eq!(reasons.len(), 2);
        assert!(parse("a.rs: one\nb.rs: other\n    Why.\n").is_err());
        assert!(parse("a.rs: one\n").is_err());
        read(crate::root()).unwrap();
    }
}
