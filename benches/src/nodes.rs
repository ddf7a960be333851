//! The nodes that workloads read and list.

use crate::task::Task;

/// The node that is read and written. The instant server takes the length of its data from its name.
pub(crate) fn node(task: &Task) -> String {
    format!("/bench-{}", task.payload)
}

/// The node that is listed. The instant server takes the number of its children from its name.
pub(crate) fn listed(task: &Task) -> String {
    format!("/bench-list-{}", task.children.unwrap_or_default())
}

/// Its children, in the order in which they are made: where the last one is, all are.
pub(crate) fn listed_children(task: &Task) -> impl Iterator<Item = String> + use<> {
    let node = listed(task);
    (0..task.children.unwrap_or_default()).map(move |number| format!("{node}/{}", child(number)))
}

/// The name of a child, as long as that of a sequential node.
pub(crate) fn child(number: usize) -> String {
    format!("node-{number:010}")
}
