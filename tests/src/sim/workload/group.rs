//! Groups: joining, leaving, and following the members.

use std::time::Duration;

use tokio::time::timeout;
use zk_locks::{Follow, Group, GroupMember, ReadError};

use super::{Over, Worker, description, unless_ended};
use crate::sim::recipe::Site;

pub(super) async fn turn(worker: &mut Worker, site: Site) -> Result<(), Over> {
    let group = worker.described(Group::builder(&worker.client, &site.path()));
    let mut following = group.follow();
    let told = following.next().await.map_err(over)?;
    let data = description(worker).into_bytes();
    let joined = group.join(&data).await;
    worker.judge(&site.path(), &joined);
    let Some(member) = unless_ended(joined)? else { return Ok(()) };
    worker.ctx.count("granted: memberships");
    let members = group.members().await.map_err(over)?;
    let own = zk_client::path::name(member.path());
    if !members.iter().any(|there| there.name == own) && member.check().await.is_ok() {
        worker.shown_wrong("S7", &format!("does not find itself among {members:?}"));
    }
    let time = worker.rng.within(0, worker.ctx.options.hold_max);
    let goes_on = worker.think(time).await;
    catch_up(worker, site, &group, following, told).await?;
    match goes_on && worker.rng.one_in(2) {
        true => drop(member),
        false => drop(member.release().await),
    }
    Ok(())
}

/// A follower sees what is there by now, sooner or later.
async fn catch_up(
    worker: &Worker,
    site: Site,
    group: &Group,
    mut following: Follow<Vec<GroupMember>>,
    mut told: Vec<GroupMember>,
) -> Result<(), Over> {
    worker.client.resolve_in_doubt().await.map_err(over)?;
    let there = group.members().await.map_err(over)?;
    let patience = worker.ctx.check().patience(worker.ctx.number);
    let stalled = worker.ctx.stalled();
    loop {
        let missing = lacks(worker, site, &there, &told);
        if missing.is_empty() {
            worker.ctx.count("groups followed");
            return Ok(());
        }
        match timeout(Duration::from_millis(patience), following.next()).await {
            Ok(Ok(now)) => {
                if now == told {
                    worker.shown_wrong("E1", &format!("is told {now:?} twice"));
                }
                told = now;
            }
            Ok(Err(error)) => return Err(over(error)),
            Err(_) => {
                if worker.ctx.stalled() == stalled {
                    worker.shown_wrong(
                        "W1",
                        &format!("is not told of {missing:?} in {}", site.path()),
                    );
                }
                return Ok(());
            }
        }
    }
}

/// Members that are present and not reported; and members that have left and are still counted.
fn lacks(worker: &Worker, site: Site, there: &[GroupMember], told: &[GroupMember]) -> Vec<String> {
    let checker = worker.ctx.check();
    let lives =
        |member: &GroupMember| checker.is_there(&zk_client::path::join(&site.path(), &member.name));
    let new = there.iter().filter(|member| !told.contains(member) && lives(member));
    let newest = there.iter().map(|member| member.joined).max();
    let gone = told.iter().filter(|member| !there.contains(member) && !lives(member));
    let gone = gone.filter(|member| Some(member.joined) <= newest);
    new.chain(gone).map(|member| member.name.clone()).collect()
}

fn over(_: ReadError) -> Over {
    Over
}
