//! Following the changes of other clients.

use std::error::Error;

use zk_client::{Cache, CacheEvent, Client, ReadError, WatchItem, WatchMode};

pub(crate) async fn once(zk: &Client) -> Result<(), Box<dyn Error>> {
    let ((settings, _), changed) = zk.get("/settings").watch().await?;
    zk.set("/settings", b"faster").await?;
    let event = changed.await?;
    println!("{} {}: it was {settings:?}", event.kind, event.path);
    Ok(())
}

pub(crate) async fn follow(zk: &Client) -> Result<(), ReadError> {
    let mut changes = zk.watch("/workers", WatchMode::Recursive).await?;
    // Watched first, read then: nothing falls in between.
    let (mut workers, _) = zk.children("/workers").await?;
    while let Some(item) = changes.next().await {
        match item {
            WatchItem::Event(event) => println!("{} {}", event.kind, event.path),
            WatchItem::Resync(why) => println!("something may be missing: {why:?}"),
            _ => {}
        }
        (workers, _) = zk.children("/workers").await?;
        if workers.is_empty() {
            return Ok(());
        }
    }
    println!("{:?}; last seen: {workers:?}", changes.end());
    Ok(())
}

pub(crate) async fn cached(zk: &Client) -> Result<(), Box<dyn Error>> {
    let cache = Cache::subtree(zk, "/workers").start()?;
    cache.ready().await?;
    println!("{} nodes, without asking anybody", cache.nodes().len());

    let mut changes = cache.events();
    zk.create("/workers/2", b"10.0.0.8:8080").await?;
    while let Some(change) = changes.next().await {
        match change {
            CacheEvent::Created(node) if node.path.ends_with("/2") => break,
            change => println!("{change:?}"),
        }
    }
    Ok(())
}
