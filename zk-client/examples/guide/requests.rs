//! Reads and writes.

use std::time::Duration;

use zk_client::{
    CallOptions, Client, CreateMode, Error, MultiError, ReadError, Rejection, Retry, WriteError,
    join,
};

pub(crate) async fn first_nodes(zk: &Client) -> Result<(), WriteError> {
    zk.create("/settings", b"fast").parents().await?;
    zk.create("/workers", b"").or_exists().await?;
    zk.create("/inbox/1", b"a job").parents().await?;
    Ok(())
}

pub(crate) async fn read_and_write(zk: &Client) -> Result<(), Error> {
    let (settings, stat) = zk.get("/settings").await?;
    println!("{} bytes, written {} times", settings.len(), stat.version);
    // Only if nobody was faster.
    zk.set("/settings", b"slow").version(stat.version).await?;

    // As new as can be: both leave at once, in this order.
    let synced = zk.sync("/settings").submit();
    let (settings, _) = zk.get("/settings").await?;
    synced.await?;
    assert_eq!(settings, "slow");
    Ok(())
}

pub(crate) async fn pipeline(zk: &Client) -> Result<(), Error> {
    let (names, _) = zk.children("/inbox").await?;
    let jobs: Vec<_> = names.iter().map(|name| zk.get(&join("/inbox", name)).submit()).collect();
    for job in jobs {
        match job.await {
            Ok((data, _)) => println!("{}", String::from_utf8_lossy(&data)),
            Err(ReadError::Rejected(Rejection::NoNode)) => println!("somebody has taken it"),
            Err(error) => return Err(error.into()),
        }
    }

    let cork = zk.cork();
    let slower = cork.set("/settings", b"slower").submit();
    let slowest = cork.set("/settings", b"slowest").submit();
    drop(cork); // both leave, in one write, with nobody else's in between
    slower.await?;
    slowest.await?;
    Ok(())
}

pub(crate) async fn doubt(zk: &Client) -> Result<(), Error> {
    let (_, stat) = zk.get("/settings").await?;
    match zk.set("/settings", b"fast").version(stat.version).await {
        Ok(stat) => println!("version {}", stat.version),
        Err(WriteError::Rejected(Rejection::BadVersion)) => println!("somebody was faster"),
        Err(WriteError::InDoubt(doubt)) => {
            println!("{doubt}: {}", doubt.cause);
            // From here on a read is conclusive.
            zk.settle().await?;
            let (settings, _) = zk.get("/settings").await?;
            println!("whatever it does, it has done by now: {settings:?}");
        }
        // Certainly not written.
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

pub(crate) async fn no_doubt(zk: &Client) -> Result<(), Error> {
    // There afterwards, whoever has created it.
    zk.create("/jobs", b"").or_exists().await?;

    // Exactly one node, found again by the id in its name; gone when `seat` is.
    let seat = zk.create("/jobs/seat-", b"").mode(CreateMode::EphemeralSequential);
    let seat = seat.protected().await?;
    println!("{} is ours", seat.path());
    seat.delete().await?;

    // Gone afterwards, whoever has deleted it.
    zk.delete("/jobs").if_exists().await?;

    // What was certainly not done may be tried again.
    let retry = Retry::new().attempts(5).pause(Duration::from_millis(50));
    retry.run(|| zk.set("/settings", b"fast").fail_fast()).await?;
    Ok(())
}

pub(crate) async fn together(zk: &Client) -> Result<(), Error> {
    zk.create("/done", b"").or_exists().await?;
    let (job, stat) = zk.get("/inbox/1").await?;
    let moved = zk
        .multi()
        .delete_version("/inbox/1", stat.version)
        .create("/done/1", &job, CreateMode::Persistent)
        .await?;
    match moved {
        Ok(results) => println!("{results:?}"),
        Err(MultiError { index, rejection }) => println!("nothing done: {index} {rejection}"),
    }
    Ok(())
}

pub(crate) async fn in_time(zk: &Client) -> Result<(), ReadError> {
    let hasty = zk.with(CallOptions::new().timeout(Duration::from_millis(300)).fail_fast());
    let settings = match hasty.get("/settings").await {
        Ok((settings, _)) => settings,
        Err(ReadError::Unavailable(_)) => b"what we had last".as_slice().into(),
        Err(error) => return Err(error),
    };
    println!("{settings:?}");
    Ok(())
}
