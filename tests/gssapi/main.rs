//! Being known by Kerberos: real servers of a realm of their own.

mod faults;
mod tickets;
mod world;
