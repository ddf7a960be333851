//! Holders are stopped in the middle of the job, on a real ZooKeeper and a real PostgreSQL.

use std::time::Duration;

use harness::{Chance, Postgres, Program, within};
use tokio::{task::JoinSet, time::timeout};
use tokio_postgres::{Client, NoTls};
use zk_testkit::real::{Server, Wanted};

/// Nights that pass side by side, each with a database and a part of ZooKeeper of its own.
const LANES: u64 = 8;
const NIGHTS: u64 = 6;

/// Soon over, for holders that are stopped.
const SESSION_MS: &str = "1000";

/// What a lane of nights came to.
#[derive(Debug, Default)]
struct Tally {
    /// Holders that were stopped after they had read, and went on after another had done the work.
    late: u64,
    /// Nights after which the total was not that of the orders that were taken into it.
    wrong: u64,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fenced_job_loses_no_order() {
    let tally = nights(&[]).await;
    assert!(tally.late > 0, "no holder came late: {tally:?}");
    assert_eq!(tally.wrong, 0, "{tally:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unfenced_job_loses_orders() {
    let tally = nights(&["--unfenced"]).await;
    assert!(tally.wrong > 0, "{tally:?}");
}

async fn nights(options: &'static [&str]) -> Tally {
    let mut chance = Chance::from_env();
    let (zookeeper, postgres) =
        (Server::start(Wanted::Any).await.unwrap(), Postgres::start().await);
    let admin = connect(&postgres.connect_string("postgres")).await;
    let mut lanes = JoinSet::new();
    for number in 0..LANES {
        admin.execute(&format!("create database lane{number}"), &[]).await.unwrap();
        let lane = Lane {
            servers: format!("{}/lane{number}", zookeeper.connect_string()),
            database: postgres.connect_string(&format!("lane{number}")),
            options,
            chance: chance.fork(),
        };
        lanes.spawn(lane.nights());
    }
    let mut sum = Tally::default();
    for tally in lanes.join_all().await {
        sum.late += tally.late;
        sum.wrong += tally.wrong;
    }
    println!("{sum:?}");
    sum
}

struct Lane {
    servers: String,
    database: String,
    options: &'static [&'static str],
    chance: Chance,
}

impl Lane {
    async fn nights(mut self) -> Tally {
        let db = connect(&self.database).await;
        db.batch_execute(include_str!("../schema.sql")).await.unwrap();
        let mut tally = Tally::default();
        for _ in 0..NIGHTS {
            tally.late += u64::from(self.night(&db).await);
            let sum = "update total set amount = (select sum(amount) from orders where booked) returning \
                (select amount from total), amount, (select count(*) from orders where not booked)";
            let row = db.query_one(sum, &[]).await.unwrap();
            let (total, booked, left): (i64, i64, i64) = (row.get(0), row.get(1), row.get(2));
            assert_eq!(left, 0, "the night's work was done");
            tally.wrong += u64::from(total != booked);
        }
        tally
    }

    /// A holder is stopped at any moment, and goes on, if at all, while another does its work or after that. Returns
    /// whether it was stopped in between reading and writing, and went on.
    async fn night(&mut self, db: &Client) -> bool {
        self.order(db).await;
        let (mut first, work) = self.start();
        let has_read = first.says("computing").await.is_some();
        let moment = Duration::from_millis(self.chance.of(0..work + 50));
        if timeout(moment, first.ended()).await.is_err() {
            first.pause();
        }
        let is_between = has_read && !first.said().contains("booked");
        self.order(db).await;

        let goes_on_early = self.chance.of(0..4) == 0;
        let dies = self.chance.of(0..6) == 0;
        within("the night's work", async { while !self.another(&first, goes_on_early).await {} })
            .await;
        if dies {
            first.kill().await;
        }
        first.resume();
        first.ended().await;
        is_between && !dies
    }

    /// Another holder does the work, unless it loses its session to a busy machine.
    async fn another(&mut self, first: &Program, goes_on_early: bool) -> bool {
        let (mut second, _) = self.start();
        if goes_on_early {
            second.says("computing").await;
            first.resume();
        }
        second.ended().await.success()
    }

    /// Some orders come in.
    async fn order(&mut self, db: &Client) {
        for _ in 0..self.chance.of(1..4) {
            let amount = i64::try_from(self.chance.of(1..1000)).unwrap();
            db.execute("insert into orders (amount) values ($1)", &[&amount]).await.unwrap();
        }
    }

    fn start(&mut self) -> (Program, u64) {
        let work = self.chance.of(50..300);
        let arguments = [&[&*self.servers, &*self.database], self.options].concat();
        let environment = [("SESSION_MS", SESSION_MS), ("WORK_MS", &*work.to_string())];
        (Program::start(env!("CARGO_BIN_EXE_nightly"), &arguments, &environment), work)
    }
}

async fn connect(database: &str) -> Client {
    let (db, connection) = tokio_postgres::connect(database, NoTls).await.unwrap();
    tokio::spawn(connection);
    db
}
