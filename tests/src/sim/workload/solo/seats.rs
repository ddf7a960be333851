//! Nodes that are there once, or not at all, whatever becomes of replies and of those who wait for them.

use zk_client::{Cause, CreateMode, OwnedNode, Rejection, SessionState, Stat, WriteError};
use zk_proto::path::join;
use zk_testkit::real::Release;

use super::{Cut, Known, Solo};

/// What is written to each.
const TAKEN: &[u8] = b"taken";

pub(super) async fn play(solo: &mut Solo) -> Known<()> {
    let mut owned = Vec::new();
    for _ in 0..solo.worker.rng.within(2, 5) {
        if let Some(node) = taken(solo).await? {
            owned.push(node);
        }
        if solo.worker.rng.one_in(3) {
            match owned.pop() {
                Some(node) if solo.worker.rng.one_in(2) => {
                    let path = node.path().to_owned();
                    let deleted = node.delete().await;
                    if let Some(end) = deleted.as_ref().err().and_then(WriteError::session_end) {
                        return solo.ended(end);
                    }
                    if deleted.is_ok() {
                        let gone = !solo.worker.ctx.check().is_there(&path);
                        solo.expect("X3", gone, format_args!("{path} is there"))?;
                    }
                }
                node => drop(node),
            }
        }
        solo.until_left(owned.len()).await?;
    }
    Ok(())
}

/// One more, if it comes to that.
async fn taken(solo: &mut Solo) -> Known<Option<OwnedNode>> {
    let is_numbered = solo.worker.rng.one_in(2);
    let mode = if is_numbered { CreateMode::EphemeralSequential } else { CreateMode::Ephemeral };
    let client = solo.worker.client.clone();
    let client = solo.worker.waiting(&client);
    let path = join(&solo.path, "seat-");
    let create = client.create(&path, TAKEN).mode(mode).protected();
    let (before, there) = (solo.came(), solo.left());
    let created = match solo.worker.rng.one_in(2) {
        true => create.parents().await,
        false => create.containers().await,
    };
    match created {
        Ok(created) => {
            let Some(node) = &created.owned else {
                return solo.wrong("X1", format_args!("{} belongs to nobody", created.path));
            };
            let is_there = solo.worker.ctx.check().is_there(node.path());
            // It goes with the session that was closed right behind.
            let state = client.session().state();
            if !is_there && matches!(state, SessionState::Closing | SessionState::Ended(_)) {
                return Err(Cut::Over);
            }
            let fits = node.path() == created.path
                && node.name().starts_with("_c_")
                && node.name().contains("-seat-")
                && is_there;
            solo.expect("X1", fits, format_args!("has made {}", created.path))?;
            is_told_right(solo, &created.stat)?;
            let is_one = (solo.came(), solo.left()) == (before + 1, there + 1);
            if !is_one {
                solo.nothing_comes_late()?;
            }
            solo.expect("X1", is_one, format_args!("several for {}", created.path))?;
            Ok(created.owned)
        }
        Err(WriteError::Rejected(Rejection::ReadOnly)) => Err(Cut::Failed),
        Err(
            WriteError::NotApplied(Cause::SessionEnded(end))
            | WriteError::InDoubt { cause: Cause::SessionEnded(end), .. },
        ) => solo.ended(end),
        Err(WriteError::NotApplied(why)) => {
            solo.read(solo.worker.client.resolve_in_doubt().await)?;
            let none = solo.came() == before;
            solo.expect("S9", none, format_args!("is told that there was none: {why}"))?;
            Ok(None)
        }
        Err(WriteError::Rejected(rejection)) => {
            solo.wrong("S9", format_args!("is refused: {rejection}"))
        }
        Err(_) => Ok(None),
    }
}

/// What a node is like that has just been made. Servers before 3.5 tell little of it.
fn is_told_right(solo: &Solo, stat: &Stat) -> Known<()> {
    let tells_little = solo.worker.ctx.options.release < Release::V3_5;
    let is_long = stat.data_length == TAKEN.len() as i32;
    let is_own = stat.ephemeral_owner == solo.worker.client.session().id();
    let is_none = tells_little && stat.data_length == 0;
    let fits = (is_long || is_none) && (is_own || tells_little) && stat.version == 0;
    solo.expect("X1", fits, format_args!("is told {stat:?}"))
}
