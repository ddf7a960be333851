//! The few steps of many that make the difference.

use super::step::{Field, Request, Sequence, Step};
use crate::shrink::fewer;

/// Leaves out of a sequence whatever can be left out while `differs` still holds.
pub fn shrink(sequence: &Sequence, mut differs: impl FnMut(&Sequence) -> bool) -> Sequence {
    let mut steps = sequence.steps.clone();
    let mut still = |steps: &[Step]| differs(&Sequence { steps: steps.to_vec() });
    loop {
        let before = steps.clone();
        fewer(&mut steps, &mut still);
        for at in 0..steps.len() {
            if let Step::Send(name, mut requests) = steps[at].clone() {
                fewer(&mut requests, |requests| {
                    let mut steps = steps.clone();
                    steps[at] = Step::Send(name, requests.to_vec());
                    !requests.is_empty() && still(&steps)
                });
                for which in 0..requests.len() {
                    simpler(&mut requests, which, &mut |requests| {
                        let mut steps = steps.clone();
                        steps[at] = Step::Send(name, requests.to_vec());
                        still(&steps)
                    });
                }
                steps[at] = Step::Send(name, requests);
            }
        }
        if steps == before {
            return Sequence { steps };
        }
    }
}

/// Shortens the lists in one request.
fn simpler(requests: &mut [Request], which: usize, still: &mut impl FnMut(&[Request]) -> bool) {
    for at in 0..requests[which].body.len() {
        let mut with = |field: Field| {
            let mut changed = requests.to_vec();
            changed[which].body[at] = field;
            still(&changed)
        };
        let shorter = match requests[which].body[at].clone() {
            Field::Parts(mut parts) => {
                fewer(&mut parts, |parts| with(Field::Parts(parts.to_vec())));
                Field::Parts(parts)
            }
            Field::Texts(Some(mut texts)) => {
                fewer(&mut texts, |texts| with(Field::Texts(Some(texts.to_vec()))));
                Field::Texts(Some(texts))
            }
            Field::Acl(Some(mut acl)) => {
                fewer(&mut acl, |acl| with(Field::Acl(Some(acl.to_vec()))));
                Field::Acl(Some(acl))
            }
            same => same,
        };
        requests[which].body[at] = shorter;
    }
}

#[cfg(test)]
mod tests {
    use zk_testkit::sim::Rng;

    use super::super::generate;
    use super::*;

    #[test]
    fn what_makes_no_difference_is_left_out() {
        let has_multi = |sequence: &Sequence| sequence.to_string().contains("multi");
        let sequence = (0..)
            .map(|index| generate(Rng::stream(1, index)))
            .find(|sequence| has_multi(sequence))
            .expect("some sequence has one");
        let shrunk = shrink(&sequence, has_multi);
        assert_eq!(shrunk.steps.len(), 1, "{shrunk}");
        assert_eq!(shrunk.steps[0].operations(), 1, "{shrunk}");
    }
}
