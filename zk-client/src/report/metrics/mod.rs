//! What sessions do, in numbers, for the recorder of the crate `metrics`.

pub(crate) mod list;
pub(crate) mod metric;
pub(crate) mod session;
