//! What is taken up at any time: by answers, whatever they are, and by requests; how these overlap; what is left of
//! secrets. Each test counts by itself, in a thread of its own, and may use as many files as it likes.

mod hostile;
mod listings;
mod overlap;
mod pipeline;
mod secrets;
