//! A place in a list whose entries come and go.

/// A step in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Motion {
    Up,
    Down,
    PageUp,
    PageDown,
    First,
    Last,
}

/// Entries that a page moves by: the screen's height is not known here.
const PAGE: usize = 10;

impl Motion {
    /// The place after this step, of `len` places.
    pub(crate) fn of(self, place: usize, len: usize) -> usize {
        let last = len.saturating_sub(1);
        let place = match self {
            Self::Up => place.saturating_sub(1),
            Self::Down => place.saturating_add(1),
            Self::PageUp => place.saturating_sub(PAGE),
            Self::PageDown => place.saturating_add(PAGE),
            Self::First => 0,
            Self::Last => last,
        };
        place.min(last)
    }
}

/// The first entry to show of `len`, so that `place` is among the `height` that are shown, in the middle if it can be.
pub(crate) fn scrolled(place: usize, len: usize, height: usize) -> usize {
    let furthest = len.saturating_sub(height);
    place.saturating_sub(height / 2).min(furthest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn motions_stay_in_the_list() {
        for (motion, expected) in [
            (Motion::Up, [0, 0, 3]),
            (Motion::Down, [0, 1, 4]),
            (Motion::PageUp, [0, 0, 0]),
            (Motion::PageDown, [0, 4, 4]),
            (Motion::First, [0, 0, 0]),
            (Motion::Last, [0, 4, 4]),
        ] {
            assert_eq!([motion.of(0, 0), motion.of(0, 5), motion.of(4, 5)], expected, "{motion:?}");
        }
    }

    #[test]
    fn selected_entry_is_always_shown() {
        for len in 0..30 {
            for height in 1..12 {
                for place in 0..len {
                    let first = scrolled(place, len, height);
                    assert!((first..first + height).contains(&place), "{place} of {len}, {height}");
                    assert!(first == 0 || first + height <= len, "nothing is shown below the end");
                }
            }
        }
    }
}
