//! The tree of nodes, and what is known of the selected one.

use std::iter;

use ratatui::{
    buffer::Buffer,
    layout::Rect,
    style::{Color, Modifier, Style},
};
use zk_client::{SessionId, path::name};

use super::{
    super::{
        cursor::scrolled,
        state::State,
        tree::{Listing, Row},
    },
    table::set,
};
use crate::render::{moment, printable};

/// From here on the node stands beside the tree.
const BESIDE: u16 = 80;

/// Bytes of data that are no text, on a line.
const BYTES: usize = 16;

pub(crate) fn draw(state: &State, area: Rect, buffer: &mut Buffer) {
    let (nodes, node) = if area.width >= BESIDE {
        let width = area.width / 2;
        let right = Rect { x: area.x + width + 1, width: area.width - width - 1, ..area };
        (Rect { width, ..area }, right)
    } else {
        let height = area.height.saturating_sub(area.height * 2 / 5);
        let below = Rect { y: area.y + height, height: area.height - height, ..area };
        (Rect { height, ..area }, below)
    };
    let rows = state.tree.rows();
    let place = state.tree.place(&rows);
    let height = usize::from(nodes.height);
    let first = scrolled(place, rows.len(), height.max(1));
    for (line, (index, row)) in rows.iter().enumerate().skip(first).take(height).enumerate() {
        let style = if index == place { Modifier::REVERSED } else { Modifier::empty() };
        set(buffer, nodes, line, &text(state, row), Style::new().add_modifier(style));
    }
    for (line, (text, style)) in details(state).into_iter().enumerate() {
        set(buffer, node, line, &text, style);
    }
}

fn text(state: &State, row: &Row) -> String {
    let indent = "  ".repeat(row.depth);
    if let Some(left_out) = row.left_out {
        return format!("{indent}… and {left_out} more, which are not listed");
    }
    let sign = match (row.is_open, state.tree.listing(&row.path)) {
        (true, Some(Err(_))) => '!',
        (true, Some(Ok(_))) => '▾',
        (true, None) => '…',
        (false, _) => '▸',
    };
    let name = if row.depth == 0 { &row.path } else { name(&row.path) };
    let watched = if state.watched.contains(&row.path) { "  (watched)" } else { "" };
    format!("{indent}{sign} {}{watched}", printable(name))
}

/// What is known of the selected node, line by line.
fn details(state: &State) -> Vec<(String, Style)> {
    let path = state.tree.selected();
    let (plain, dim) = (Style::new(), Style::new().add_modifier(Modifier::DIM));
    let mut lines = vec![(printable(path), plain.fg(Color::Cyan))];
    let Listing { stat, data, .. } = match state.tree.listing(path) {
        None => {
            lines.push(("…".to_owned(), dim));
            return lines;
        }
        Some(Err(why)) => {
            lines.push((printable(why), plain.fg(Color::Red)));
            return lines;
        }
        Some(Ok(listing)) => listing,
    };
    let owner = match stat.ephemeral_owner {
        SessionId(0) => "none".to_owned(),
        owner => owner.to_string(),
    };
    for (what, value) in [
        ("children", stat.num_children.to_string()),
        ("bytes", stat.data_length.to_string()),
        ("version", stat.version.to_string()),
        ("created", format!("{}  0x{:x}", moment(stat.ctime), stat.czxid.0)),
        ("written", format!("{}  0x{:x}", moment(stat.mtime), stat.mzxid.0)),
        ("owner", owner),
    ] {
        lines.push((format!("{what:<9}{value}"), plain));
    }
    lines.push((String::new(), plain));
    match data {
        None => lines.push(("its data may not be read".to_owned(), plain.fg(Color::Yellow))),
        Some(data) => {
            lines.extend(shown(data).into_iter().map(|line| (line, plain)));
            if usize::try_from(stat.data_length).is_ok_and(|len| len > data.len()) {
                lines.push((format!("… the first {} bytes", data.len()), dim));
            }
        }
    }
    lines
}

/// Data as text, or, if it is none, as numbers.
fn shown(data: &[u8]) -> Vec<String> {
    // What is cut off in the middle of a character is text all the same.
    let text = match std::str::from_utf8(data) {
        Ok(text) => Some(text),
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&data[..error.valid_up_to()]).ok()
        }
        Err(_) => None,
    };
    match text {
        Some(text) => text.lines().map(|line| printable(&line.replace('\t', "    "))).collect(),
        None => data
            .chunks(BYTES)
            .map(|chunk| {
                let hex = chunk.iter().map(|byte| format!("{byte:02x}"));
                let blank = iter::repeat_n("  ".to_owned(), BYTES - chunk.len());
                let signs = chunk.iter().map(|&byte| match byte {
                    b' '..=b'~' => char::from(byte),
                    _ => '.',
                });
                let hex: Vec<_> = hex.chain(blank).collect();
                format!("{}  {}", hex.join(" "), signs.collect::<String>())
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_is_shown_as_text_or_numbers() {
        assert_eq!(shown(b"a\tb\n\x1b[2J"), ["a    b", "\u{fffd}[2J"]);
        assert_eq!(shown("é".as_bytes()[..1].as_ref()), [""; 0]);
        assert_eq!(shown(b"\xffab"), [format!("ff 61 62{}  .ab", " ".repeat(39))]);
        assert!(shown(b"").is_empty());
    }
}
