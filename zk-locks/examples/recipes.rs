//! Several accounts locked together, at most two transfers at a time, and a report that many may read.

use zk_locks::{Client, Lost, MultiLock, RwLock, Semaphore, SharedGuard};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    run("127.0.0.1:2181").await
}

/// The program, for servers of one's choice.
pub async fn run(servers: &str) -> Result<(), Box<dyn std::error::Error>> {
    let zk = Client::connect(servers).await?;

    // One of two permits; whoever has it last gives it back.
    let permit = Semaphore::new(&zk, "/limits/transfers", 2).acquire().await?;

    // Both or neither, in one transaction: nobody deadlocks with who names them the other way round.
    let accounts = ["/accounts/7", "/accounts/9"];
    let guards = MultiLock::new(&zk, accounts).acquire().await?;
    for path in accounts {
        let token = guards.get(path).map(|guard| guard.token().get());
        println!("{path}: transferring under {token:?}");
    }
    guards.release().await?;
    permit.release().await?;

    // Writes, and goes on to read without letting another writer in between.
    let report = RwLock::new(&zk, "/locks/report").write().await?;
    let report = report.downgrade().await?;
    println!("reading what was written under {}", report.token());
    report.release().await?;

    // Held until the last one goes.
    let outer = zk_locks::Lock::new(&zk, "/locks/nested").acquire().await?.share();
    nested(&outer)?;
    outer.release().await?;

    zk.close().await?;
    Ok(())
}

fn nested(outer: &SharedGuard) -> Result<(), Lost> {
    let again = outer.reenter()?;
    println!("{} guards of {}", again.count(), again.path());
    Ok(())
}
