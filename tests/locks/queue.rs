//! Who comes when.
