//! What is taken up at any time: by answers, whatever they are, by requests, and by sessions that idle; how the first two
//! overlap; what is left of secrets. Each test counts by itself, in a thread of its own, and may use as many files as it likes.

mod hostile;
mod idle;
mod listings;
mod overlap;
mod pipeline;
mod secrets;
