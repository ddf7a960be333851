//! Closing is in time by a clock that gains, too: a wait that began earlier, for something else, was measured
//! by what that clock said then.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use zk_client::ConnectOptions;
use zk_testkit::{
    server::Config,
    sim::{
        Cluster, Fault, Incident, Process, Rng, Schedule, Setup, SimConnect, State, Target, Tasks,
        servers, sim_clock,
    },
};
use zk_tests::paused;

/// As long as closing may take.
const CLOSE_MAX: Duration = Duration::from_secs(2);

/// When the servers' answers stop coming, in milliseconds.
const SILENT_FROM: u64 = 10_000;

/// Closes a session whose servers have been silent for so many milliseconds, by a clock that gains one part in
/// twenty. Returns how long that takes.
fn closing_after(silence: u64) -> Duration {
    let runtime = paused::runtime();
    let tasks = Tasks::new(Rng::new(1));
    let _inside = runtime.enter();
    let (fault, target) = (Fault::HoleDown, Target::All);
    let hole = Incident { at: SILENT_FROM, fault, target, lasts: 60_000, amount: 0 };
    let schedule = Schedule(vec![hole]);
    let setup =
        Setup { seed: 1, clients: 1, servers: Config::default(), latency: (1, 5), schedule };
    let cluster = Cluster::new(setup, &tasks);
    tasks.spawn(Process(0), cluster.pump());
    let (to, by) = (cluster, tasks.clone());
    let took = runtime.block_on(tokio::task::unconstrained(tasks.run(async move {
        let began = Instant::now();
        let zk = ConnectOptions::new(&servers(1))
            .unwrap()
            .session_timeout(Duration::from_secs(40))
            .connector(SimConnect::new(&to, 0))
            .clock(sim_clock(50_000))
            .seed(1)
            .spawn_with(move |task| by.spawn(State::process(0), task))
            .connect()
            .await
            .unwrap();
        sleep_until(began + Duration::from_millis(SILENT_FROM)).await;
        // Its answer is what is waited for.
        let _unanswered = zk.get("/").submit();
        sleep_until(began + Duration::from_millis(SILENT_FROM + silence)).await;
        let asked = Instant::now();
        zk.close().await.unwrap_err();
        asked.elapsed()
    })));
    tasks.clear();
    took
}

#[test]
fn close_is_in_time_after_any_silence() {
    for silence in (0..25_000).step_by(50) {
        let took = closing_after(silence);
        let rounding = Duration::from_millis(10);
        assert!(took <= CLOSE_MAX + rounding, "after {silence} ms of silence it took {took:?}");
    }
}
