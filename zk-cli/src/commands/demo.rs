//! `zk demo`: fifty contenders for one lock.

use std::{fmt::Write as _, sync::Arc, time::Duration};

use serde::Serialize;
use tokio::task::JoinSet;
use zk_client::Client;
use zk_testkit::real::Install;

use crate::{
    args::DemoArgs,
    demo::{
        contenders::{self, Contest},
        progress::Progress,
        resource::Resource,
        stage::{Choice, Stage},
        timeline::timeline,
        verdict::{Evidence, Verdict},
    },
    exit::{Exit, Failure},
    render,
};

/// How long a grant may take beyond the time that others hold the lock, all together.
const SLACK: Duration = Duration::from_secs(60);

/// The last line with `--json`.
#[derive(Debug, Serialize)]
struct Report<'a> {
    server: &'a str,
    path: &'a str,
    contenders: u16,
    rounds: u16,
    hold_ms: u128,
    #[serde(flatten)]
    verdict: &'a Verdict,
}

pub(crate) async fn run(args: DemoArgs) -> Result<Exit, Failure> {
    let choice = match &args.server {
        Some(server) => Choice::Running(server.clone()),
        None if args.install => Choice::Start(Install::Allowed),
        None if args.real => Choice::Start(Install::Forbidden),
        None => Choice::InProcess,
    };
    let stage = Stage::set(choice, &args.path).await?;
    let title = title(&args, &stage.description);
    if args.output.json {
        eprint(&title);
    } else {
        render::bytes(title.as_bytes())?;
    }
    let (verdict, timeline) = match perform(&args, &stage).await {
        Ok(performed) => performed,
        Err(failure) => {
            // Why it has failed is what there is to say, also if the path stays.
            let _ = stage.clear().await;
            return Err(failure);
        }
    };
    let text = format!("{timeline}\n{}", verdict.text());
    if args.output.json {
        eprint(&text);
        render::json(&Report {
            server: &stage.description,
            path: &args.path,
            contenders: args.contenders,
            rounds: args.rounds,
            hold_ms: args.hold.as_millis(),
            verdict: &verdict,
        })?;
    } else {
        render::bytes(text.as_bytes())?;
    }
    stage.clear().await?;
    Ok(verdict.exit())
}

async fn perform(args: &DemoArgs, stage: &Stage) -> Result<(Verdict, String), Failure> {
    let (contenders, rounds) = (usize::from(args.contenders), usize::from(args.rounds));
    let expected = contenders * rounds;
    let held_by_all =
        u32::try_from(expected).map_or(Duration::MAX, |all| args.hold.saturating_mul(all));
    let contest = Arc::new(Contest {
        path: args.path.to_string(),
        rounds,
        hold: args.hold,
        patience: held_by_all.saturating_add(SLACK),
        resource: Resource::default(),
        progress: Progress::new(expected),
    });
    let clients = contenders::connect(&stage.proxy.connect_string(), contenders).await?;
    let failures = contenders::compete(&contest, &clients).await;
    // All releases have been confirmed, so their frames have passed; no session has been closed.
    let requests = stage.requests();
    let orphans_released = stage.children().await?;
    close(clients).await;
    let orphans_closed = stage.children().await?;
    let record = contest.resource.record();
    let timeline = timeline(&record.visits);
    let evidence =
        Evidence { expected, record, failures, orphans_released, orphans_closed, requests };
    Ok((Verdict::of(&evidence), timeline))
}

/// Closes all sessions, side by side.
async fn close(clients: Vec<Client>) {
    let mut closing: JoinSet<_> =
        clients.into_iter().map(|client| async move { client.close().await }).collect();
    // A session that has ended otherwise has failed a contender, which is known by now.
    while closing.join_next().await.is_some() {}
}

fn title(args: &DemoArgs, server: &str) -> String {
    let DemoArgs { contenders, rounds, path, hold, .. } = args;
    let mut title = format!("{server}\n{contenders} contenders for the lock {path}");
    if *rounds != 1 {
        let _ = write!(title, ", {rounds} times each");
    }
    let _ = writeln!(title, ", held for {} each time", humantime::format_duration(*hold));
    title
}

/// Standard error may be closed: then there is no reader.
fn eprint(text: &str) {
    let _ = std::io::Write::write_all(&mut std::io::stderr(), text.as_bytes());
}
