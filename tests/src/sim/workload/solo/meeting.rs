//! Barriers and groups.

use zk_locks::{Barrier, DoubleBarrier, Group, GroupMember, Layout};
use zk_proto::path::{join, name};

use super::{Cut, Known, Solo};

pub(super) async fn barrier(solo: &mut Solo) -> Known<()> {
    if solo.worker.rng.one_in(2) {
        return double(solo).await;
    }
    let builder = Barrier::builder(&solo.worker.client, &join(&solo.path, "barrier"));
    let barrier = solo.set_up(builder);
    is_set(solo, &barrier, false).await?;
    let waited = barrier.wait().await;
    solo.had("waiting at", waited)?;
    let removed = barrier.remove().await;
    solo.had("removing", removed)?;
    let set = barrier.set().await;
    solo.had("setting", set)?;
    is_set(solo, &barrier, true).await?;
    let again = barrier.set().await;
    let again = solo.had("setting", again)?;
    solo.expect("E1", !again, format_args!("was not set, and it was"))?;
    let passed = solo.times_out(|time| barrier.wait_timeout(time)).await?;
    solo.expect("B1", passed.is_none(), format_args!("passes a barrier that is set"))?;
    let wait = barrier.wait();
    tokio::pin!(wait);
    solo.still_waits("B1", wait.as_mut(), &[]).await?;
    let removed = barrier.remove().await;
    solo.had("removing", removed)?;
    is_set(solo, &barrier, false).await?;
    let waited = wait.await;
    solo.had("waiting at", waited)
}

async fn is_set(solo: &Solo, barrier: &Barrier, expected: bool) -> Known<()> {
    let set = barrier.is_set().await;
    let set = solo.read(set)?;
    solo.expect("B1", set == expected, format_args!("is told {set}, not {expected}"))
}

/// One alone does not enter, two do, and both leave together.
async fn double(solo: &mut Solo) -> Known<()> {
    let builder = DoubleBarrier::builder(&solo.worker.client, &solo.path);
    let barrier = solo.set_up(builder).of(2);
    if solo.worker.rng.one_in(3) {
        // As a round leaves it whose participants have died.
        let ready = join(&solo.path, "ready");
        let ready = solo.worker.client.create(&ready, b"").parents().await;
        ready.or(Err(Cut::Failed))?;
    }
    let alone = solo.times_out(|time| barrier.enter_timeout(time)).await?;
    solo.expect("B2", alone.is_none(), format_args!("enters without the other"))?;
    solo.until_left(0).await?;
    for _ in 0..solo.worker.rng.within(1, 2) {
        // If one fails, the other would wait for ever.
        let both = tokio::try_join!(biased; barrier.enter(), barrier.enter());
        let (one, other) = solo.had("entering", both)?;
        solo.is_held(&*one, one.check()).await?;
        solo.is_held(&*other, other.check()).await?;
        let leave = one.leave();
        tokio::pin!(leave);
        solo.still_waits("B2", leave.as_mut(), &[&*other]).await?;
        let both = tokio::try_join!(biased; leave, other.leave());
        solo.had("leaving", both)?;
        // Also the sign that all are there.
        solo.until_left(0).await?;
    }
    Ok(())
}

pub(super) async fn group(solo: &mut Solo) -> Known<()> {
    let layout = *solo.worker.rng.pick(&[Layout::Curator, Layout::Kazoo]);
    let builder = Group::builder(&solo.worker.client, &solo.path).layout(layout);
    let group = solo.set_up(builder);
    members(solo, &group, &[]).await?;
    let mut follow = group.follow();
    let mut joined = Vec::new();
    for data in ["the first", "the second"] {
        let member = group.join(data.as_bytes()).await;
        let member = solo.had("joining", member)?;
        joined.push((member, data));
        let expected: Vec<_> = joined.iter().map(|(member, data)| (member.path(), *data)).collect();
        members(solo, &group, &expected).await?;
        followed(solo, &mut follow, &expected).await?;
    }
    for (member, _) in &joined {
        solo.is_held(member, member.check()).await?;
    }
    let (first, _) = joined.remove(solo.worker.rng.index(2));
    solo.released(first.release().await)?;
    let (last, data) = joined.remove(0);
    members(solo, &group, &[(last.path(), data)]).await?;
    followed(solo, &mut follow, &[(last.path(), data)]).await?;
    solo.holds(&last)?;
    solo.released(last.release().await)
}

async fn members(solo: &Solo, group: &Group, expected: &[(&str, &str)]) -> Known<()> {
    let members = group.members().await;
    let members = solo.read(members)?;
    solo.expect("E1", are(solo, &members, expected), format_args!("is told of {members:?}"))
}

fn are(solo: &Solo, members: &[GroupMember], expected: &[(&str, &str)]) -> bool {
    let session = solo.worker.client.session().id();
    members.len() == expected.len()
        && members.iter().zip(expected).all(|(member, (path, data))| {
            member.name == name(path) && member.data == *data && member.session == session
        })
}

/// Those who follow hear of it, perhaps of what was before that first.
async fn followed(
    solo: &Solo,
    follow: &mut zk_locks::Follow<Vec<GroupMember>>,
    expected: &[(&str, &str)],
) -> Known<()> {
    loop {
        let told = follow.next().await;
        if are(solo, &solo.read(told)?, expected) {
            return Ok(());
        }
    }
}
