//! Fewer things for the same failure: delta debugging over a list.

/// Leaves out runs of items, long ones first, as long as what is left `still` fails. What an item is needed for may go
/// with a later one: to be repeated until nothing changes, where that matters.
pub(crate) fn fewer<T: Clone>(items: &mut Vec<T>, mut still: impl FnMut(&[T]) -> bool) {
    let mut run = items.len().div_ceil(2);
    while run > 0 {
        let mut at = 0;
        while at < items.len() {
            let mut without = items.clone();
            without.drain(at..(at + run).min(items.len()));
            if still(&without) {
                *items = without;
            } else {
                at += run;
            }
        }
        run = if run == 1 { 0 } else { run.div_ceil(2) };
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn only_what_fails_is_left() {
        let mut items: Vec<u32> = (0..100).collect();
        super::fewer(&mut items, |left| left.contains(&17) && left.contains(&80));
        assert_eq!(items, [17, 80]);
    }
}
