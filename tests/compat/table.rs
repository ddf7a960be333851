//! The table, made and read.

use zk_testkit::real::Release;

use crate::compat::operations::{OPERATIONS, Outcome};

/// As the guide has it.
pub(crate) fn documented() -> String {
    let guide = include_str!("../../zk-client/src/guide/compatibility.md");
    guide.lines().filter(|line| line.starts_with('|')).map(|line| format!("{line}\n")).collect()
}

pub(crate) fn columns() -> Vec<String> {
    Release::ALL.iter().map(|release| release.to_string()).collect()
}

/// As it was found out: for each release what became of each operation.
pub(crate) fn rendered(found: &[Vec<Outcome>]) -> String {
    let row = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let mut text = row([vec!["operation".to_owned()], columns()].concat());
    text += &format!("|{}\n", "---|".repeat(1 + found.len()));
    for (number, name) in OPERATIONS.iter().enumerate() {
        let cells = found.iter().map(|outcomes| outcomes[number].to_string());
        text += &row([(*name).to_owned()].into_iter().chain(cells).collect());
    }
    text
}
