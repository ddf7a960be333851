//! What is logged, and where: on standard error, as `-v` or `ZK_LOG` say.

use std::{env, io};

use tracing_subscriber::{
    filter::Targets, fmt, layer::SubscriberExt as _, util::SubscriberInitExt as _,
};

use crate::exit::{Exit, Failure};

/// What to log, as `LEVEL` or `TARGET=LEVEL,TARGET=LEVEL`.
const VARIABLE: &str = "ZK_LOG";

/// Starts to log, if that is asked for; `-v` has precedence.
pub(crate) fn start(verbose: u8) -> Result<(), Failure> {
    let filter = match verbose {
        0 => match env::var(VARIABLE) {
            Ok(filter) if !filter.is_empty() => filter,
            _ => return Ok(()),
        },
        1 => "info".to_owned(),
        2 => "debug".to_owned(),
        _ => "trace".to_owned(),
    };
    let targets: Targets = filter.parse().map_err(|error| {
        Failure::new(Exit::Usage, format_args!("{VARIABLE}: {error}"))
            .next("ZK_LOG=debug, or ZK_LOG=zk_client=trace,zk_locks=info")
    })?;
    let lines = fmt::layer().with_ansi(false).with_writer(io::stderr);
    // It fails if there is one already, which would be ours.
    let _ = tracing_subscriber::registry().with(targets).with(lines).try_init();
    Ok(())
}
