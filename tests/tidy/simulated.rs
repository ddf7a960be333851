//! Every public function of the client and the recipes is called by the simulator, or listed with a reason.

use std::{collections::BTreeSet, fs};

use crate::tidy::{files, root};

/// Functions that a trait of others asks for.
const OF_TRAITS: [&str; 8] =
    ["clone", "deref", "drop", "fmt", "from", "into_future", "poll", "poll_next"];

/// The functions of our own types in a list of public items.
pub(super) fn public(list: &str) -> impl Iterator<Item = &str> {
    let functions = list.lines().filter(|line| line.starts_with("pub ")).filter_map(|line| {
        let (_, path) = line.split_once("fn zk_")?;
        path.split('(').next()
    });
    // What is behind the last `::`, but for its parameters: `zk_client::Cache::node<'a>`.
    let names = functions.filter_map(|path| {
        let end = path.find('>').filter(|_| path.ends_with('>') && !path.contains(">::"));
        let path = end.map_or(path, |_| path.split('<').next().unwrap());
        path.rsplit("::").next()?.split('<').next()
    });
    names.filter(|name| !OF_TRAITS.contains(name))
}

/// The words of a source, without its comments and strings.
pub(super) fn words(source: &str) -> BTreeSet<&str> {
    let code = source.lines().filter_map(|line| line.split("//").next());
    let code = code.flat_map(|line| line.split('"').step_by(2));
    code.flat_map(|code| code.split(|c: char| !(c.is_alphanumeric() || c == '_'))).collect()
}

/// What is between backticks in the table below a heading of a page.
fn listed(page: &str, heading: &str) -> BTreeSet<String> {
    let (_, section) = page.split_once(heading).expect("the page has that section");
    let section = section.split("\n## ").next().unwrap_or_default();
    let rows = section.lines().filter(|line| line.starts_with('|'));
    let names = rows
        .flat_map(|row| row.split('|').nth(1).unwrap_or_default().split('`').skip(1).step_by(2));
    names.map(str::to_owned).collect()
}

#[test]
fn what_is_not_simulated_is_listed_with_its_reason() {
    let sources: Vec<String> = files(&root().join("tests/src/sim"), ".rs")
        .iter()
        .map(|path| fs::read_to_string(path).unwrap())
        .collect();
    let called: BTreeSet<&str> = sources.iter().flat_map(|source| words(source)).collect();
    let lists = ["zk-client", "zk-locks"]
        .map(|name| fs::read_to_string(root().join(format!("tests/surface/{name}.txt"))).unwrap());
    let public: BTreeSet<&str> = lists.iter().flat_map(|list| public(list)).collect();
    assert!(public.len() > 200, "the lists of public items were not understood: {public:?}");
    let gaps: BTreeSet<String> = public.difference(&called).map(|&name| name.to_owned()).collect();
    let page = fs::read_to_string(root().join("docs/simulation.md")).unwrap();
    let listed = listed(&page, "## Not simulated");
    let unlisted: Vec<_> = gaps.difference(&listed).collect();
    let outdated: Vec<_> = listed.difference(&gaps).collect();
    assert!(unlisted.is_empty(), "neither simulated nor listed: {unlisted:?}");
    assert!(outdated.is_empty(), "listed, and simulated or gone: {outdated:?}");
}
