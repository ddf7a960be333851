//! A working tree becomes a patch.

use std::{fs, path::Path, process::Command};

use crate::patch;

/// Lines around a change, at most.
const CONTEXT_MAX: usize = 10;

/// Writes what differs in the product from the last commit to a patch, with as little around it as tells where it is.
pub(crate) fn add(root: &Path, name: &str) -> Result<(), String> {
    let git = |args: &[&str]| {
        let output = Command::new("git").args(args).current_dir(root).output();
        let output = output.map_err(|error| error.to_string())?;
        String::from_utf8(output.stdout).map_err(|error| error.to_string())
    };
    let is_located = |diff: &str| {
        patch::read(diff)?.iter().try_for_each(|patch| {
            let text = git(&["show", &format!("HEAD:{}", patch.file)])?;
            patch.edits(&text.lines().collect::<Vec<_>>()).map(drop)
        })
    };
    let mut diff = String::new();
    for context in 1..=CONTEXT_MAX {
        let args =
            ["diff", "HEAD", &format!("-U{context}"), "--", "zk-proto", "zk-client", "zk-locks"];
        diff = git(&args)?;
        if is_located(&diff).is_ok() {
            break;
        }
    }
    is_located(&diff)?;
    if diff.is_empty() {
        return Err("the product is as it was committed".to_owned());
    }
    let is_needed = |line: &&str| !line.starts_with("diff --git ") && !line.starts_with("index ");
    let diff: String = diff.lines().filter(is_needed).flat_map(|line| [line, "\n"]).collect();
    let path = root.join(format!("tests/mutants/patches/{name}.patch"));
    let head = "What is wrong.\n\norigin: own\nbreaks: S1\njudge: simulator\n\n";
    fs::write(&path, format!("{head}{diff}")).map_err(|error| error.to_string())?;
    println!("{}: say what is wrong, and undo the change", path.display());
    Ok(())
}
