//! Nothing but benchmarks, in `benches/`.
