//! Futures whose type has no name.

use std::{future::Future, pin::Pin};

/// A future in a box: what traits of this crate return. Dropping it gives up.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
