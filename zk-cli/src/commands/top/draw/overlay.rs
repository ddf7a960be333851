//! What lies over the screen: the help, and questions before something is done that hurts.

use ratatui::{
    buffer::Buffer,
    layout::Rect,
    style::{Color, Modifier, Style},
};

use super::{
    super::{
        keys::KEYS,
        state::{Deed, Now, Overlay, State, Verb},
    },
    table::{set, width},
};
use crate::render::{age, age_millis, printable};

/// Lines of a question are broken to this.
const WIDTH: usize = 72;

pub(crate) fn draw(state: &State, area: Rect, buffer: &mut Buffer) {
    let (lines, style) = match &state.overlay {
        None => return,
        Some(Overlay::Help) => (help(), Style::new()),
        Some(Overlay::Confirm(deed)) => (question(deed, state.now), Style::new().fg(Color::Red)),
    };
    let room = usize::from(area.width).saturating_sub(4).max(1);
    let lines: Vec<String> = lines.iter().flat_map(|line| broken(line, room.min(WIDTH))).collect();
    let widest = lines.iter().map(|line| width(line)).max().unwrap_or_default();
    let size = |len: usize, most: u16| u16::try_from(len).unwrap_or(u16::MAX).min(most);
    let (w, h) = (size(widest + 4, area.width), size(lines.len() + 2, area.height));
    let at = Rect::new(area.x + (area.width - w) / 2, area.y + (area.height - h) / 2, w, h);
    for line in 0..usize::from(h) {
        // A frame that is drawn in reverse: no characters that a terminal may not have.
        let text =
            line.checked_sub(1).and_then(|index| lines.get(index)).map_or("", String::as_str);
        let blank = " ".repeat(usize::from(w));
        set(buffer, at, line, &blank, style.add_modifier(Modifier::REVERSED));
        set(buffer, at, line, &format!("  {text}"), style.add_modifier(Modifier::REVERSED));
    }
}

fn help() -> Vec<String> {
    let keys = KEYS.iter().map(|(keys, what)| format!("{keys:<13} {what}"));
    let more = [
        "",
        "HAND/S: contenders that left the queue per second, over ten seconds",
        "HELD, LONGEST, SINCE: since they joined the queue, by two clocks",
    ];
    keys.chain(more.map(str::to_owned)).collect()
}

/// Says who is met, and what comes of it.
fn question(deed: &Deed, now: Now) -> Vec<String> {
    let (whom, lock) = (deed.whom(), printable(&deed.lock));
    let contender = &deed.entry.contender;
    let since = age(age_millis(contender.since, now.wall));
    let role = if deed.entry.holds { "It holds the lock" } else { "It waits in the queue" };
    let facts = format!(
        "{role}, since {since}: token {}, session {}. {} wait.",
        contender.token, contender.session, deed.waiting
    );
    let (ask, then, verb) = match deed.verb {
        Verb::Revoke => (
            format!("Ask {whom} to give {lock} back?"),
            "Whether it does is up to it: zk lock --revocable does, and what else listens for that. Others go on."
                .to_owned(),
            "ask",
        ),
        Verb::Evict if deed.entry.holds => (
            format!("Evict {whom} from {lock}?"),
            format!(
                "The next in the queue gets the lock, at once. {whom} may go on for a while without knowing: only \
                 a resource that checks tokens is safe from it."
            ),
            "evict",
        ),
        Verb::Evict => (
            format!("Evict {whom} from the queue of {lock}?"),
            "It loses its place, and its acquire fails.".to_owned(),
            "evict",
        ),
    };
    vec![
        ask,
        String::new(),
        facts,
        then,
        String::new(),
        format!("y  {verb}      any other key  do nothing"),
    ]
}

/// A text in lines of this width, broken between words.
fn broken(text: &str, room: usize) -> Vec<String> {
    if width(text) <= room {
        return vec![text.to_owned()];
    }
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is one at least");
        if line.is_empty() {
            line.push_str(word);
        } else if width(line) + 1 + width(word) <= room {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_broken_between_words_and_keeps_them() {
        let text = "Evict the holder from its lock? It may go on without knowing";
        assert_eq!(broken("short", 5), ["short"]);
        for room in 10..70 {
            let lines = broken(text, room);
            assert_eq!(lines.join(" "), text, "{room}");
            assert!(lines.iter().all(|line| width(line) <= room), "{room}: {lines:?}");
        }
        // Longer than a line.
        assert_eq!(broken("a lengthy path", 4), ["a", "lengthy", "path"]);
    }
}
