//! Servers, ensembles and the proxy, in one binary: real processes, real sockets.

mod fuzz_server;
mod peer;
mod proxy;
mod real;
mod server;
mod support;
