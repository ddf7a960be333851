//! Who held the lock when, as text.

use std::{collections::BTreeMap, fmt::Write as _, time::Duration};

use super::resource::Visit;

/// What fits a terminal of the default width.
const WIDTH: usize = 80;

/// Rows that are shown at most: contenders beyond that are only counted.
const ROWS_MAX: usize = 64;

/// In front of the bars: the contender's number. Behind them: how long it waited for its first grant.
const LABEL_WIDTH: usize = 6;
const WAIT_WIDTH: usize = 9;
const BAR_WIDTH: usize = WIDTH - LABEL_WIDTH - WAIT_WIDTH;

const WAITING: char = '·';
const HOLDING: char = '█';

/// One row for each contender, in the order of first grants.
pub(crate) fn timeline(visits: &[Visit]) -> String {
    let end = visits.iter().map(|visit| visit.left.unwrap_or(visit.entered)).max();
    let Some(end) = end.filter(|end| !end.is_zero()) else {
        return String::from("the lock was never held\n");
    };
    let rows = rows(visits);
    let mut text = header(end);
    for (contender, visits) in rows.iter().take(ROWS_MAX) {
        let waited = visits
            .first()
            .map_or(Duration::ZERO, |first| first.entered.saturating_sub(first.visitor.asked));
        let bar = bar(visits, end);
        let _ = writeln!(text, "{contender:>4}  {bar}{:>WAIT_WIDTH$}", seconds(waited));
    }
    if rows.len() > ROWS_MAX {
        let _ = writeln!(text, "{:>4}  and {} more contenders", "", rows.len() - ROWS_MAX);
    }
    text
}

/// Visits by contender, contenders by their first visits.
fn rows(visits: &[Visit]) -> Vec<(usize, Vec<Visit>)> {
    let mut places = BTreeMap::new();
    let mut rows: Vec<(usize, Vec<Visit>)> = Vec::new();
    for visit in visits {
        let contender = visit.visitor.contender;
        let place = *places.entry(contender).or_insert_with(|| {
            rows.push((contender, Vec::new()));
            rows.len() - 1
        });
        rows[place].1.push(*visit);
    }
    rows
}

fn header(end: Duration) -> String {
    let (label, wait) = ("who", "waited");
    let axis_end = seconds(end);
    let axis_width = BAR_WIDTH - 1;
    format!(
        "{:LABEL_WIDTH$}{WAITING} waiting  {HOLDING} holding\n\
         {label:>4}  0{axis_end:>axis_width$}{wait:>WAIT_WIDTH$}\n",
        ""
    )
}

/// A contender's waiting and holding on the axis from the start signal to the last leave.
fn bar(visits: &[Visit], end: Duration) -> String {
    let column = |time: Duration| {
        let share = time.as_secs_f64() / end.as_secs_f64() * BAR_WIDTH as f64;
        (share as usize).min(BAR_WIDTH)
    };
    let mut bar = [' '; BAR_WIDTH];
    for visit in visits {
        let entered = column(visit.entered).min(BAR_WIDTH - 1);
        bar[column(visit.visitor.asked).min(entered)..entered].fill(WAITING);
        // However short: it did hold it. And the next one may hold it from the column of the leave on.
        let left = visit.left.map_or(BAR_WIDTH, column);
        bar[entered..left.max(entered + 1)].fill(HOLDING);
    }
    bar.iter().collect()
}

fn seconds(time: Duration) -> String {
    format!("{:.2}s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::resource::Visitor;

    fn visit(contender: usize, asked: u64, entered: u64, left: u64) -> Visit {
        let millis = Duration::from_millis;
        let visitor = Visitor { contender, token: 1, sequence: 1, asked: millis(asked) };
        Visit { visitor, entered: millis(entered), left: Some(millis(left)) }
    }

    /// The bars alone, without the header.
    fn bars(visits: &[Visit]) -> Vec<String> {
        let text = timeline(visits);
        let bar = |line: &str| line.chars().skip(LABEL_WIDTH).take(BAR_WIDTH).collect();
        text.lines().skip(2).map(bar).collect()
    }

    #[test]
    fn every_line_fits_80_columns() {
        let visits: Vec<_> =
            (0..100).map(|i| visit(i + 9_900, 0, 10 * i as u64, 10 * i as u64 + 9)).collect();
        for line in timeline(&visits).lines() {
            assert!(line.chars().count() <= WIDTH, "{line:?}");
        }
        assert!(timeline(&visits).ends_with("and 36 more contenders\n"));
    }

    #[test]
    fn disjoint_visits_never_share_a_column() {
        let visits: Vec<_> =
            (0..50).map(|i| visit(i, 0, 33 * i as u64 + 2, 33 * i as u64 + 33)).collect();
        let bars = bars(&visits);
        assert_eq!(bars.len(), 50);
        for column in 0..BAR_WIDTH {
            let holders =
                bars.iter().filter(|bar| bar.chars().nth(column) == Some(HOLDING)).count();
            assert!(holders <= 1, "column {column}\n{}", timeline(&visits));
        }
    }

    #[test]
    fn overlaps_and_empty_holds_are_visible() {
        let bars = bars(&[visit(1, 0, 0, 100), visit(2, 0, 50, 50)]);
        let middle = |bar: &String| bar.chars().nth(BAR_WIDTH / 2);
        assert_eq!(bars.iter().map(middle).collect::<Vec<_>>(), [Some(HOLDING); 2]);
        assert_eq!(bars[1].chars().filter(|c| *c == HOLDING).count(), 1);
    }

    #[test]
    fn all_visits_of_a_contender_share_a_row() {
        let bars = bars(&[visit(7, 0, 0, 10), visit(8, 0, 40, 50), visit(7, 60, 90, 100)]);
        assert_eq!(bars.len(), 2);
        assert!(bars[0].starts_with(HOLDING) && bars[0].ends_with(HOLDING), "{bars:?}");
        assert!(bars[0].contains(" ·"), "{bars:?}");
    }

    #[test]
    fn without_visits_it_says_so() {
        assert_eq!(timeline(&[]), "the lock was never held\n");
    }
}
