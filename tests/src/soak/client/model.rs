//! What a writer has written, and what there must be now.

use std::collections::BTreeMap;

use zk_client::Zxid;

use super::{
    change::{Change, Done},
    layout,
};

/// What one writer has written. No other client writes its nodes, so that it knows what must be there.
#[derive(Clone, Debug)]
pub(super) struct Model {
    pub(super) writer: usize,
    /// By which transaction each version of the register was written, from the first one on.
    pub(super) register: Vec<Zxid>,
    pub(super) data: Vec<u8>,
    /// Everything else that must be there, with its data: in the writer's own directory, and entries below counters.
    pub(super) nodes: BTreeMap<String, Vec<u8>>,
    /// How often it has counted, and by which transactions.
    pub(super) counted: Vec<Counted>,
    /// Number of the latest write: no two write the same.
    serial: u64,
}

/// A counter was raised.
#[derive(Clone, Debug)]
pub(super) struct Counted {
    pub(super) counter: usize,
    pub(super) zxid: Zxid,
    /// What was written to the counter with it.
    pub(super) data: Vec<u8>,
}

impl Model {
    pub(super) fn new(writer: usize, created: Zxid) -> Self {
        Self {
            writer,
            register: vec![created],
            data: Vec::new(),
            nodes: BTreeMap::new(),
            counted: Vec::new(),
            serial: 0,
        }
    }

    /// The register's version.
    pub(super) fn version(&self) -> i32 {
        i32::try_from(self.register.len() - 1).expect("nobody lives to see that many writes")
    }

    /// Data that were never written before.
    pub(super) fn unique(&mut self) -> String {
        self.serial += 1;
        format!("w{:02}-{}", self.writer, self.serial)
    }

    /// The names in the writer's own directory.
    pub(super) fn names(&self) -> Vec<String> {
        let directory = layout::directory(self.writer);
        let own = self.nodes.keys().filter_map(|path| path.strip_prefix(&directory));
        let mut names: Vec<_> = own.map(|name| name[1..].to_owned()).collect();
        names.push("r".to_owned());
        names.sort_unstable();
        names
    }

    /// The paths of those nodes of which there may be only so many before some are deleted.
    pub(super) fn nodes_named(&self, prefix: &str) -> Vec<String> {
        let prefix = format!("{}/{prefix}", layout::directory(self.writer));
        self.nodes.keys().filter(|path| path.starts_with(&prefix)).cloned().collect()
    }

    /// The paths of the entries below counters.
    pub(super) fn entries(&self) -> Vec<String> {
        let directory = layout::directory(self.writer);
        self.nodes.keys().filter(|path| !path.starts_with(&directory)).cloned().collect()
    }

    /// A write was applied.
    ///
    /// # Errors
    /// Not in the way it should have been.
    pub(super) fn apply(&mut self, change: Change, done: Done) -> Result<(), String> {
        let told = format!("{change:?}, {done:?}");
        match (change, done) {
            (Change::Set { data, .. }, Done::Set { version, zxid }) => {
                self.register.push(zxid);
                self.data = data;
                let is_next = version == self.version() && self.register.is_sorted();
                return if is_next { Ok(()) } else { Err(format!("not the next version: {told}")) };
            }
            (Change::Create { data, .. }, Done::Created { path })
            | (Change::Sequential { data }, Done::Created { path }) => {
                if self.nodes.insert(path, data).is_some() {
                    return Err(format!("there already: {told}"));
                }
            }
            (Change::Delete { paths }, Done::Deleted) => {
                for path in paths {
                    self.nodes.remove(&path);
                }
            }
            (Change::Count { counter, entry, data, .. }, Done::Counted { zxid }) => {
                self.nodes.insert(entry, data.clone());
                self.counted.push(Counted { counter, zxid, data });
            }
            _ => return Err(format!("something else was done: {told}")),
        }
        Ok(())
    }
}
