//! What each member has at the end, beside what the models say.

use std::{
    collections::{BTreeMap, BTreeSet},
    error::Error,
};

use bytes::Bytes;
use zk_client::{ConnectOptions, Stat};
use zk_testkit::real::Ensemble;

use super::{super::Report, connect, layout, model::Model, shared::Shared};

/// What a node must be at the end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Node {
    data: Vec<u8>,
    /// How often it was written.
    version: i32,
}

impl Node {
    pub(super) fn is_like(&self, data: &[u8], stat: &Stat) -> bool {
        self.data == data && self.version == stat.version
    }
}

/// What there must be at the end, with all nodes above it.
pub(super) fn expected(models: &[Model]) -> BTreeMap<String, Node> {
    let mut nodes = BTreeMap::from([(layout::ROOT.to_owned(), Node::default())]);
    for model in models {
        nodes.insert(layout::directory(model.writer), Node::default());
        let register = Node { data: model.data.clone(), version: model.version() };
        nodes.insert(layout::register(model.writer), register);
        for (path, data) in &model.nodes {
            nodes.insert(path.clone(), Node { data: data.clone(), version: 0 });
        }
    }
    for counter in 0..layout::COUNTERS {
        let counted = models.iter().flat_map(|model| &model.counted);
        let counted: Vec<_> = counted.filter(|counted| counted.counter == counter).collect();
        let last = counted.iter().max_by_key(|counted| counted.zxid);
        let data = last.map_or_else(Vec::new, |last| last.data.clone());
        let version = i32::try_from(counted.len()).unwrap_or(i32::MAX);
        nodes.insert(layout::counter(counter), Node { data, version });
    }
    nodes
}

/// Compares what each member has with what the models say, and what streams have heard.
pub(super) async fn judge(ensemble: &Ensemble, shared: &Shared, report: &mut Report) {
    let mut models = shared.models().clone();
    models.sort_by_key(|model| model.writer);
    let expected = expected(&models);
    let mut first = None;
    for member in 0..ensemble.len() {
        let found = match tree(&ensemble.connect_string_of(&[member])).await {
            Ok(found) => found,
            Err(error) => {
                report.violation(format!("member {member}: {error}"));
                continue;
            }
        };
        let wrong = differences(&expected, &found);
        report.expect(wrong.is_empty(), || format!("member {member}: {}", wrong.join("; ")));
        let first = first.get_or_insert_with(|| found.clone());
        report.expect(*first == found, || format!("member {member} differs from the first one"));
    }
    report.figure("nodes of each member that were compared", expected.len());
    let histories: Vec<_> = models.iter().map(|model| &model.register[..]).collect();
    let there: BTreeSet<_> = expected.into_keys().collect();
    for span in shared.take_spans() {
        for wrong in span.judge(&histories, &there) {
            report.violation(wrong);
        }
    }
}

/// In which nodes they differ, and how.
fn differences(
    expected: &BTreeMap<String, Node>,
    found: &BTreeMap<String, (Bytes, Stat)>,
) -> Vec<String> {
    let mut wrong = Vec::new();
    for (path, node) in expected {
        match found.get(path) {
            Some((data, stat)) if node.is_like(data, stat) => {}
            other => wrong.push(format!("{path} should be {node:?}: {other:?}")),
        }
    }
    let unknown = found.keys().filter(|path| !expected.contains_key(*path));
    wrong.extend(unknown.map(|path| format!("{path} should not be there")));
    wrong
}

/// Everything that one member has, as of now.
async fn tree(server: &str) -> Result<BTreeMap<String, (Bytes, Stat)>, Box<dyn Error>> {
    let zk = connect(ConnectOptions::new(server)?).await?;
    zk.sync("/").await?;
    let mut found = BTreeMap::new();
    for path in layout::listing(&zk).await? {
        let node = zk.get(&path).await?;
        found.insert(path, node);
    }
    zk.close().await?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use zk_client::Zxid;

    use super::{
        super::{
            change::{Change, Done},
            model::Model,
        },
        *,
    };

    #[test]
    fn lost_or_doubled_writes_are_reported() {
        let mut model = Model::new(0, Zxid(1));
        let set = Change::Set { data: b"x".to_vec(), says_version: true };
        model.apply(set.clone(), Done::Set { version: 1, zxid: Zxid(2) }).unwrap();
        model.apply(set, Done::Set { version: 3, zxid: Zxid(4) }).unwrap_err();

        let expected =
            BTreeMap::from([("/a".to_owned(), Node { data: b"x".to_vec(), version: 1 })]);
        let with = |path: &str, data: &'static [u8], version| {
            let stat = Stat { version, ..Stat::default() };
            BTreeMap::from([(path.to_owned(), (Bytes::from_static(data), stat))])
        };
        assert_eq!(differences(&expected, &with("/a", b"x", 1)), [""; 0]);
        for wrong in [with("/a", b"y", 1), with("/a", b"x", 2), BTreeMap::new()] {
            assert_eq!(differences(&expected, &wrong).len(), 1);
        }
        assert_eq!(differences(&expected, &with("/b", b"x", 1)).len(), 2);
    }
}
