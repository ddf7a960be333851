//! Plays valid, borderline and malformed conversations against a server that speaks ZooKeeper's protocol,
//! and compares each of its answers with those of the in-process server.
//!
//! ```sh
//! cargo run -p zk-testkit --example fuzz_server -- 127.0.0.1:2181 [--plays N] [--seed S] [--wipe] \
//!     [--release 3.8] [--extended-types]
//! ```
//!
//! What differs, hangs or ends the server is made as short as possible and printed as a transcript; the
//! exit code is 1 then. **It deletes all nodes of the server, again and again**: it refuses a server that
//! has any, unless run with `--wipe`. `docs/fuzzing.md` has more.

mod duel;
mod peer;
mod play;
mod show;

use std::{net::SocketAddr, process::ExitCode};

use zk_testkit::server::Config;

struct Args {
    server: SocketAddr,
    plays: u32,
    seed: u64,
    wipe: bool,
    /// What the server is compared with.
    model: Config,
}

fn main() -> ExitCode {
    let Some(args) = parse(std::env::args().skip(1)) else {
        eprintln!(
            "usage: fuzz_server HOST:PORT [--plays N] [--seed S] [--wipe] [--release LINE] [--extended-types]"
        );
        return ExitCode::from(2);
    };
    match duel::is_empty(args.server) {
        Err(error) => {
            eprintln!("{}: {error}", args.server);
            return ExitCode::from(2);
        }
        Ok(false) if !args.wipe => {
            eprintln!("{} has nodes, which would be lost: say --wipe", args.server);
            return ExitCode::from(2);
        }
        Ok(_) => {}
    }
    match duel::fight(args.server, &args.model, args.plays, args.seed) {
        Ok(tally) => {
            println!("{} plays, {} answers compared, nothing found", args.plays, tally.compared);
            ExitCode::SUCCESS
        }
        Err(found) => {
            println!("{found}");
            ExitCode::FAILURE
        }
    }
}

fn parse(mut args: impl Iterator<Item = String>) -> Option<Args> {
    let server = args.next()?.parse().ok()?;
    let mut parsed = Args { server, plays: 1000, seed: 0, wipe: false, model: Config::default() };
    while let Some(arg) = args.next() {
        match &*arg {
            "--plays" => parsed.plays = args.next()?.parse().ok()?,
            "--seed" => parsed.seed = args.next()?.parse().ok()?,
            "--wipe" => parsed.wipe = true,
            "--release" => parsed.model.release = args.next()?.parse().ok()?,
            "--extended-types" => parsed.model.extended_types = true,
            _ => return None,
        }
    }
    Some(parsed)
}
