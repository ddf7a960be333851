//! Lines that are remembered from shell to shell.

use std::{env, fs::DirBuilder, os::unix::fs::DirBuilderExt as _, path::PathBuf};

/// Lines that are kept.
pub(crate) const LINES_MAX: usize = 10_000;

/// Where they are, if anywhere: a file in a folder that is there by then.
pub(crate) fn file() -> Option<PathBuf> {
    let set = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let state =
        set("XDG_STATE_HOME").or_else(|| Some(set("HOME")?.join(".local").join("state")))?;
    let folder = state.join("zk");
    DirBuilder::new().recursive(true).mode(0o700).create(&folder).ok()?;
    Some(folder.join("history"))
}

/// Options with an identity that may have a secret in it.
const SECRETS: [&str; 3] = ["--auth", "--sasl-user", "--super-digest"];

/// Whether a line is to be remembered: none that has a secret in it.
pub(crate) fn is_kept(line: &str) -> bool {
    let is_secret = |word: &str| word.split('=').next().is_some_and(|it| SECRETS.contains(&it));
    // As a shell has it, and as it is: a comment, or one whose quotation does not end, has no words.
    let words = shlex::split(line).unwrap_or_default();
    let has_secret = words.iter().any(|it| is_secret(it)) || line.split_whitespace().any(is_secret);
    !line.trim().is_empty() && !line.starts_with(' ') && !has_secret
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_remembered() {
        assert!(is_kept("ls /a") && is_kept("get --auth-file f /a"));
        for line in [
            "",
            " ls",
            "ls --auth digest:u:p /",
            "ls --auth=digest:u:p /",
            "ls \"--auth\" digest:u:p /",
        ] {
            assert!(!is_kept(line), "{line}");
        }
        for option in ["--sasl-user ann:sesame", "--super-digest=super:xQJm"] {
            assert!(!is_kept(&format!("serve {option}")), "{option}");
        }
    }
}
