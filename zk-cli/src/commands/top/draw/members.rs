//! The table of servers.

use ratatui::{
    buffer::Buffer,
    layout::Rect,
    style::{Color, Modifier, Style},
};

use super::{
    super::{
        members::{Member, report},
        state::State,
    },
    table::{Column, Row, Table},
};
use crate::{
    commands::health::Answer,
    render::{Lean, age, printable},
};

const COLUMNS: [Column; 11] = [
    Column { title: "SERVER", lean: Lean::Left, rank: 0, least: 21 },
    Column { title: "STATE", lean: Lean::Left, rank: 0, least: 10 },
    Column { title: "ASKED ms", lean: Lean::Right, rank: 4, least: 0 },
    Column { title: "LATENCY ms", lean: Lean::Left, rank: 5, least: 0 },
    Column { title: "OUTSTANDING", lean: Lean::Right, rank: 1, least: 0 },
    Column { title: "CONNECTIONS", lean: Lean::Right, rank: 2, least: 0 },
    Column { title: "REQ/S", lean: Lean::Right, rank: 3, least: 0 },
    Column { title: "BEHIND", lean: Lean::Right, rank: 6, least: 0 },
    Column { title: "NODES", lean: Lean::Right, rank: 7, least: 0 },
    Column { title: "VERSION", lean: Lean::Left, rank: 8, least: 0 },
    Column { title: "ZXID", lean: Lean::Left, rank: 9, least: 0 },
];

/// Requests that wait from which on a server is behind with its work.
const OUTSTANDING_MANY: u64 = 10;

pub(crate) fn draw(state: &State, area: Rect, buffer: &mut Buffer) {
    let report = report(&state.members);
    let behind = |index: usize| report.as_ref()?.servers.get(index)?.behind;
    let rows = state.members.iter().enumerate();
    let rows = rows.map(|(index, member)| row(state, member, behind(index))).collect();
    Table { columns: &COLUMNS, rows, place: 0, is_marked: false }.draw(area, buffer);
}

fn row(state: &State, member: &Member, behind: Option<i64>) -> Row {
    let or_dash = |what: Option<String>| what.unwrap_or_else(|| "-".to_owned());
    let mut cells = vec![printable(&member.server)];
    let mut tail = None;
    let style = match &member.answer {
        None => {
            tail = Some("…".to_owned());
            Style::new().add_modifier(Modifier::DIM)
        }
        Some(Answer::Serves(it)) => {
            let mean = |[least, mean, most]: [f64; 3]| format!("{least:.0}/{mean:.1}/{most:.0}");
            cells.extend([
                printable(&it.mode),
                format!("{:.1}", member.took.as_secs_f64() * 1e3),
                or_dash(it.latency_ms.map(mean)),
                or_dash(it.outstanding.map(|it| it.to_string())),
                or_dash(it.connections.map(|it| it.to_string())),
                or_dash(member.requests.map(|it| format!("{it:.0}"))),
                or_dash(behind.map(|it| it.to_string())),
                or_dash(it.nodes.map(|it| it.to_string())),
                or_dash(it.version.as_deref().map(printable)),
                format!("0x{:x}", it.zxid),
            ]);
            let is_busy = it.outstanding.is_some_and(|it| it >= OUTSTANDING_MANY);
            match &*it.mode {
                _ if is_busy => Style::new().fg(Color::Yellow),
                "leader" => Style::new().fg(Color::Green),
                _ => Style::new(),
            }
        }
        Some(Answer::Says { what }) => {
            tail = Some(refusal(what));
            Style::new().fg(Color::Yellow)
        }
        Some(Answer::Fails { why }) => {
            let since = member.down_since.map(|since| {
                let down = state.now.instant.saturating_duration_since(since).as_millis();
                age(i64::try_from(down).unwrap_or(i64::MAX))
            });
            tail = Some(format!("DOWN {}: {}", since.unwrap_or_default(), printable(why)));
            Style::new().fg(Color::Red).add_modifier(Modifier::BOLD)
        }
    };
    Row { cells, tail, style }
}

/// What a server says that does not say how it is, with what helps.
fn refusal(what: &str) -> String {
    if what.contains("whitelist") {
        return "srvr not permitted: set 4lw.commands.whitelist=srvr in its zoo.cfg".to_owned();
    }
    printable(what)
}
