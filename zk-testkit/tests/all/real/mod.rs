//! Real servers: found, started, hurt, and cleaned up after.

mod cleanup;
mod ensemble;
mod locate;
mod server;
