//! A nightly job: takes the day's orders into the total. Start it on every machine; one works at a time, and if that dies
//! the next one does the work.
//!
//! ```sh
//! psql -f schema.sql
//! nightly zk1:2181,zk2:2181 "host=db1 user=nightly"
//! ```
//!
//! The job reads, computes for long, and writes. A holder of the lock can be stopped anywhere in between, by a hypervisor
//! or by a lack of memory, until others have done its work; it then goes on and writes what it has computed, whatever it
//! has lost by then. So the table remembers the token of its last holder and refuses older ones: one column, `fence`, and
//! one `where`. With `--unfenced` the job leaves the `where` out, which loses orders.

use std::{env, error::Error, thread, time::Duration};

use tokio::task::block_in_place;
use tokio_postgres::NoTls;
use zk_locks::{ConnectOptions, FencingToken, Lock};

/// Equal tokens are let in: a holder comes several times.
const FENCE: &str = "where fence <= $1";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let (servers, database, fence) = match &arguments[..] {
        [servers, database] => (servers, database, FENCE),
        [servers, database, option] if option == "--unfenced" => (servers, database, ""),
        _ => return Err("usage: nightly SERVERS DATABASE [--unfenced]".into()),
    };

    let options = ConnectOptions::new(servers)?.session_timeout(from_env("SESSION_MS", 10_000)?);
    let zk = options.connect().await?;
    let guard = Lock::new(&zk, "/jobs/nightly").acquire().await?;
    // Ends the job, at its next `await`, when the lock is lost.
    let booked = guard.scope(book(database, fence, guard.token())).await??;
    println!("booked {booked} orders under {}", guard.token());
    guard.release().await?;
    zk.close().await?;
    Ok(())
}

/// The job itself. Returns how many orders there were.
async fn book(database: &str, fence: &str, token: FencingToken) -> Result<usize, Box<dyn Error>> {
    let (db, connection) = tokio_postgres::connect(database, NoTls).await?;
    tokio::spawn(connection);

    // Reading shows the token too: from here on no older holder can write.
    let claim = format!("update total set fence = $1 {fence} returning amount");
    // Both in one statement, so that the total and the orders that are in it never differ.
    let write = format!(
        "with written as (update total set amount = $2, fence = $1 {fence} returning id)
        update orders set booked = true from written where orders.id = any($3)",
    );
    let write = db.prepare(&write).await?;

    let token = token.get();
    let claimed =
        db.query_opt(&claim, &[&token]).await?.ok_or("refused: another was here later")?;
    let (mut total, mut ids): (i64, Vec<i64>) = (claimed.get(0), Vec::new());
    for order in db.query("select id, amount from orders where not booked", &[]).await? {
        ids.push(order.get(0));
        total += order.get::<_, i64>(1);
    }
    if ids.is_empty() {
        return Ok(0);
    }

    println!("computing {} orders", ids.len());
    // The night's work. There is no `await` between it and the write at which `scope` could end the job.
    let work = from_env("WORK_MS", 1_000)?;
    block_in_place(|| thread::sleep(work));

    match db.execute(&write, &[&token, &total, &ids]).await? {
        0 => Err("refused: another was here later".into()),
        _ => Ok(ids.len()),
    }
}

/// A time in milliseconds.
fn from_env(name: &str, default: u64) -> Result<Duration, Box<dyn Error>> {
    let millis = env::var(name).map_or(Ok(default), |millis| millis.parse());
    Ok(Duration::from_millis(millis.map_err(|error| format!("{name}: {error}"))?))
}
