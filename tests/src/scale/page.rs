//! The tables of docs/scale.md.

use std::time::Duration;

use super::{
    fleets::{IDLE, Return, ensemble_away, idle, member_gone, most_dials, one_change},
    queues::{Queue, cohort, lock},
    site::{ROUND_TRIP, SESSION_TIMEOUT, SESSION_TIMEOUT_MAX},
    traffic::Counts,
};

/// A table: each row is what so many cost.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// Its first line.
    pub head: &'static str,
    row: fn(usize) -> Vec<String>,
}

/// How long all servers are away.
const AWAY: Duration = Duration::from_secs(5);

/// All tables of the page.
pub const TABLES: [Table; 8] = [
    Table {
        head: "| waiters for one lock | requests to join | KiB received to join | requests to hand over | events to hand over | KiB received to hand over | round trips to hand over |",
        row: |waiters| lock_row(&lock(waiters, false)),
    },
    Table {
        head: "| waiters that look ahead | requests to join | KiB received to join | requests to hand over | events to hand over | KiB received to hand over | round trips to hand over |",
        row: |waiters| lock_row(&lock(waiters, true)),
    },
    Table {
        head: "| tasks that want one cohort lock, 16 to a session | requests for each | events for each | KiB received for each |",
        row: cohort_row,
    },
    Table {
        head: "| idle sessions | pings a second, timeout 10 s | timeout 40 s | KiB a second both ways, timeout 10 s | timeout 40 s |",
        row: idle_row,
    },
    Table {
        head: "| sessions that follow one node | events of a change | requests | KiB received |",
        row: change_row,
    },
    Table {
        head: "| sessions with a timeout of 10 s, all servers away for 5 s | half are back after | all are back after | sessions lost | dials for each | most dials in 100 ms |",
        row: |sessions| return_row(sessions, &ensemble_away(sessions, SESSION_TIMEOUT, AWAY)),
    },
    Table {
        head: "| sessions with a timeout of 40 s, all servers away for 5 s | half are back after | all are back after | sessions lost | dials for each | most dials in 100 ms |",
        row: |sessions| return_row(sessions, &ensemble_away(sessions, SESSION_TIMEOUT_MAX, AWAY)),
    },
    Table {
        head: "| sessions of three members, one of which dies | half are back after | all are back after | sessions lost | dials for each | most dials in 100 ms |",
        row: |sessions| return_row(sessions, &member_gone(sessions)),
    },
];

/// The page with the rows of up to `most` as they are now.
#[must_use]
pub fn filled(page: &str, most: usize) -> String {
    let mut table = None;
    let mut filled = String::new();
    for line in page.lines() {
        table = TABLES.iter().find(|table| table.head == line).or(table);
        if !line.starts_with('|') {
            table = None;
        }
        let count = line.split('|').nth(1).and_then(|cell| cell.replace(' ', "").parse().ok());
        let row = table.zip(count.filter(|&count: &usize| count <= most));
        match row {
            Some((table, count)) => filled.push_str(&table.line(count)),
            None => filled.push_str(line),
        }
        filled.push('\n');
    }
    filled
}

impl Table {
    fn line(&self, count: usize) -> String {
        let cells = std::iter::once(grouped(count as u64)).chain((self.row)(count));
        format!("| {} |", cells.collect::<Vec<_>>().join(" | "))
    }
}

fn lock_row(queue: &Queue) -> Vec<String> {
    let &Queue { joined, ref joining, hand_overs, ref handing, took } = queue;
    vec![
        each(joining.requests, joined),
        kib_each(joining.received, joined),
        each(handing.requests, hand_overs),
        each(handing.events, hand_overs),
        kib_each(handing.received, hand_overs),
        format!("{:.1}", took.as_secs_f64() / ROUND_TRIP.as_secs_f64() / hand_overs as f64),
    ]
}

fn cohort_row(tasks: usize) -> Vec<String> {
    let (sections, counts) = cohort(tasks);
    vec![
        each(counts.requests, sections),
        each(counts.events, sections),
        kib_each(counts.received, sections),
    ]
}

fn idle_row(sessions: usize) -> Vec<String> {
    let [short, long] = [SESSION_TIMEOUT, SESSION_TIMEOUT_MAX].map(|it| idle(sessions, it));
    let seconds = IDLE.as_secs() as usize;
    let pings = |counts: &Counts| each(counts.pings + counts.requests, seconds);
    let kib = |counts: &Counts| kib_each(counts.sent + counts.received, seconds);
    vec![pings(&short), pings(&long), kib(&short), kib(&long)]
}

fn change_row(sessions: usize) -> Vec<String> {
    let counts = one_change(sessions);
    vec![grouped(counts.events), grouped(counts.requests), grouped(counts.received.div_ceil(1024))]
}

fn return_row(sessions: usize, back: &Return) -> Vec<String> {
    let Return { half, all, lost, counts } = back;
    vec![
        seconds(*half),
        seconds(*all),
        lost.to_string(),
        each(counts.dials.len() as u64, sessions),
        grouped(most_dials(counts) as u64),
    ]
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

/// With one digit behind the point if there is anything to say there.
fn figure(figure: f64) -> String {
    if figure >= 100.0 { grouped(figure.round() as u64) } else { format!("{figure:.1}") }
}

fn each(sum: u64, count: usize) -> String {
    figure(sum as f64 / count as f64)
}

fn kib_each(bytes: u64, count: usize) -> String {
    figure(bytes as f64 / 1024.0 / count as f64)
}

fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let parts: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().filter_map(|it| std::str::from_utf8(it).ok()).collect();
    parts.join(" ")
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;

    /// What larger ones cost, `zk-sim scale --write` finds out.
    const MOST: usize = 100;

    #[test]
    fn page_says_what_a_hundred_cost() {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/scale.md");
        let page = fs::read_to_string(page).unwrap();
        for table in TABLES {
            assert!(page.contains(table.head), "no table {}", table.head);
        }
        let filled = filled(&page, MOST);
        let differ: Vec<_> =
            page.lines().zip(filled.lines()).filter(|(is, was)| is != was).collect();
        assert!(differ.is_empty(), "zk-sim scale --write: {differ:#?}");
    }

    #[test]
    fn numbers_are_read_by_people() {
        assert_eq!([grouped(7), grouped(1_000), grouped(1_234_567)], ["7", "1 000", "1 234 567"]);
        assert_eq!([each(7, 2), each(0, 3), each(1_000_000, 7)], ["3.5", "0.0", "142 857"]);
    }
}
