//! All combinations: which there are, which are drawn, and what has come of them.
//!
//! docs/combinations.md tells how to run one of them, or all.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use zk_testkit::{real::Release, sim::Rng};
use zk_tests::{share::hash, sim::commit};

use crate::combinations::{
    cell::{Cell, Outcome, Play, Variant, Way},
    changes, copies, holding, lasting, meeting,
    table::Table,
    trouble::{Met, Point, Trouble, Troubles},
};

/// Points that each trouble is drawn for, of each play asked in each way.
const DRAWN: usize = 1;

/// One cell of so many has a second trouble.
const PAIRS: u64 = 10;

/// Servers of today, and of yesterday: without containers, without persistent watches, without throttling.
const RELEASES: [Release; 2] = [Release::NEWEST, Release::V3_4];

/// Which cells are run.
struct Choice {
    seed: u64,
    /// Only those whose names have this in them.
    part: Option<String>,
    /// Not only some of them.
    all: bool,
}

impl Choice {
    fn of_environment() -> Self {
        let var = |name| std::env::var(name).ok();
        let seed = var("ZK_CELLS_SEED").unwrap_or_else(commit);
        println!("drawn from {seed}");
        let part = var("ZK_CELL");
        let all = var("ZK_CELLS").map_or_else(|| part.is_some(), |which| which == "all");
        Self { seed: hash(&seed), part, all }
    }

    /// Whether a cell is meant, or one that its name is the beginning of.
    fn may_lead_to(&self, name: &str) -> bool {
        self.part.as_ref().is_none_or(|part| name.contains(part) || part.starts_with(name))
    }

    fn is_meant(&self, name: &str) -> bool {
        self.part.as_ref().is_none_or(|part| name.contains(part))
    }

    /// Every play in every way, without troubles: in every variant, or in one.
    fn calm<'a>(&self, plays: &'a [Play]) -> Vec<Cell<'a>> {
        let mut cells = Vec::new();
        for play in plays {
            for way in Way::ALL {
                let cell = |variant, release| {
                    let variant = Variant::nth(variant);
                    Cell { play, way, variant, release, troubles: Troubles::default() }
                };
                if self.all {
                    let releases = RELEASES.into_iter();
                    cells.extend(releases.flat_map(|release| {
                        (0..Variant::COUNT).map(move |variant| cell(variant, release))
                    }));
                } else {
                    let mut rng = Rng::new(self.seed ^ cell(0, RELEASES[0]).seed());
                    let release = RELEASES[usize::from(rng.one_in(3))];
                    cells.push(cell(rng.below(Variant::COUNT), release));
                }
            }
        }
        let near = |cell: &Cell<'_>| self.may_lead_to(&cell.to_string());
        // Otherwise a part of what follows the beginning is meant.
        if cells.iter().any(near) {
            cells.retain(near);
        }
        cells
    }

    /// One trouble for each request that was seen, or for some of them.
    fn troubled<'a>(&self, calm: &Cell<'a>, requests: &[Point]) -> Vec<Cell<'a>> {
        let mut cells = Vec::new();
        for trouble in Trouble::ALL {
            let can = |point: &&Point| trouble.happens_to(point.op, calm.release);
            let points: Vec<Point> = requests.iter().filter(can).copied().collect();
            // Dealt out, so that the ways have different ones before they have the same.
            let mut deck = Rng::new(self.seed ^ hash(&format!("{}{trouble:?}", calm.play.recipe)));
            let first = deck.index(points.len().max(1)) + DRAWN * calm.way as usize;
            let some = if self.all { points.len() } else { DRAWN.min(points.len()) };
            let dealt = (0..some).map(|number| points[(first + number) % points.len()]);
            cells.extend(dealt.map(|point| {
                let troubles = Troubles { first: Some((point, trouble)), second: None };
                Cell { troubles, ..calm.clone() }
            }));
        }
        cells.retain(|cell| self.may_lead_to(&cell.to_string()));
        cells
    }

    /// A second trouble for some.
    fn doubled<'a>(&self, cell: &Cell<'a>, met: &Met) -> Option<Cell<'a>> {
        let mut rng = Rng::new(hash(&cell.to_string()));
        let wanted = rng.one_in(PAIRS) || self.part.is_some();
        let near = &met.followed[..met.followed.len().min(8)];
        let after = Some(rng.index(near.len().max(1))).filter(|_| wanted && !near.is_empty())?;
        let trouble = *rng.pick(&Trouble::ALL);
        let troubles = Troubles { second: Some((after + 1, trouble)), ..cell.troubles };
        let doubled = Cell { troubles, ..cell.clone() };
        let can = trouble.happens_to(near[after].op, cell.release);
        Some(doubled).filter(|doubled| can && self.may_lead_to(&doubled.to_string()))
    }
}

fn plays() -> Vec<Play> {
    holding::plays()
        .chain(changes::plays())
        .chain(meeting::plays())
        .chain(copies::plays())
        .chain(lasting::plays())
        .collect()
}

#[test]
fn promises_hold_in_every_combination() {
    let choice = Choice::of_environment();
    let table = Mutex::new(Table::default());
    let record = |cell: &Cell<'_>, outcome: &Outcome| {
        if choice.is_meant(&cell.to_string()) {
            table.lock().expect("no task panics").record(cell, outcome);
        }
    };
    let plays = plays();
    let calm = choice.calm(&plays);
    let troubled = Mutex::new(Vec::new());
    each(&calm, |cell| {
        let outcome = play(cell);
        record(cell, &outcome);
        let mut requests = outcome.met.requests;
        requests.sort_unstable();
        let mut cells = choice.troubled(cell, &requests);
        troubled.lock().expect("no task panics").append(&mut cells);
    });
    let troubled = troubled.into_inner().expect("no task panics");
    each(&troubled, |cell| {
        let outcome = play(cell);
        record(cell, &outcome);
        if let Some(doubled) = choice.doubled(cell, &outcome.met) {
            record(&doubled, &play(&doubled));
        }
    });
    let table = table.into_inner().expect("no task panics");
    println!("{table}");
    table.judge();
}

/// Plays a cell, whatever it does.
fn play(cell: &Cell<'_>) -> Outcome {
    catch_unwind(AssertUnwindSafe(|| cell.run())).unwrap_or_else(|_| {
        let met = Met { first: true, second: true, ..Met::default() };
        Outcome { met, promises: Err("somebody panics, as told above".to_owned()) }
    })
}

/// Does something with all of them, on as many threads as there is room for.
fn each<T: Sync>(items: &[T], work: impl Fn(&T) + Sync) {
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                    work(item);
                }
            });
        }
    });
}
