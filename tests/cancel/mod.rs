//! Every future of the client and of the locks, dropped wherever it can be: nothing stays behind, and the
//! next call works.

mod complete;
mod coordination;
mod lasting;
mod operations;
mod recipes;
mod scene;
mod stage;
mod sweep;
