//! Ways to divide members and clients, each as the pairs between which nothing gets through.

use std::collections::BTreeSet;

use zk_testkit::sim::Rng;

use super::network::Party::{self, Client, Member};

pub(super) type Cuts = BTreeSet<(Party, Party)>;

/// Both ways.
fn between(one: &[Party], other: &[Party]) -> Cuts {
    let pairs = one.iter().flat_map(|&one| other.iter().map(move |&other| (one, other)));
    pairs.flat_map(|(one, other)| [(one, other), (other, one)]).collect()
}

/// A minority, with `among` in it, from the others. Some clients are with it, if they are given, and others are not.
pub(super) fn minority(members: usize, among: usize, clients: usize) -> Cuts {
    let size = members.div_ceil(2) - 1;
    let number = |place: usize| (among + place) % members;
    let mut few: Vec<Party> = (0..size).map(|place| Member(number(place))).collect();
    let mut many: Vec<Party> = (size..members).map(|place| Member(number(place))).collect();
    few.extend((0..clients).filter(|client| client % 2 == 0).map(Client));
    many.extend((0..clients).filter(|client| client % 2 == 1).map(Client));
    between(&few, &many)
}

/// Two halves that see each other through one member only.
pub(super) fn bridge(members: usize, over: usize) -> Cuts {
    let number = |place: usize| Member((over + place) % members);
    let half = members / 2 + 1;
    let one: Vec<Party> = (1..half).map(number).collect();
    let other: Vec<Party> = (half..members).map(number).collect();
    between(&one, &other)
}

/// Nothing that a member sends arrives at the other members, or nothing of theirs at it.
pub(super) fn one_way(members: usize, victim: usize, outbound: bool) -> Cuts {
    let others = (0..members).filter(|other| *other != victim);
    let pair = |other| (Member(victim), Member(other));
    others.map(pair).map(|(from, to)| if outbound { (from, to) } else { (to, from) }).collect()
}

/// Each member sees its two neighbours only. Three are all neighbours: there, each hears one of the others only.
pub(super) fn ring(members: usize) -> Cuts {
    let mut cuts = Cuts::new();
    for from in 0..members {
        for to in 0..members {
            let distance = (to + members - from) % members;
            let is_apart = match members {
                3 => distance == 2,
                _ => (2..members - 1).contains(&distance),
            };
            if is_apart {
                cuts.insert((Member(from), Member(to)));
            }
        }
    }
    cuts
}

/// A member from its leader, and from no other.
pub(super) fn severed(member: usize, leader: usize) -> Cuts {
    between(&[Member(member)], &[Member(leader)])
}

/// Clients from a member, their own or not, or from all of them.
pub(super) fn clients(members: usize, client: usize, rng: &mut Rng) -> Cuts {
    let from: Vec<Party> = match rng.index(3) {
        0 => (0..members).map(Member).collect(),
        _ => vec![Member(rng.index(members))],
    };
    between(&[Client(client)], &from)
}

/// Any pair, in either direction, with the same chance.
pub(super) fn any(members: usize, clients: usize, rng: &mut Rng) -> Cuts {
    let all: Vec<Party> = (0..members).map(Member).chain((0..clients).map(Client)).collect();
    let mut cuts = Cuts::new();
    for &from in &all {
        for &to in &all {
            if from != to && rng.one_in(4) {
                cuts.insert((from, to));
            }
        }
    }
    cuts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of whom each member hears and is heard.
    fn seen(members: usize, cuts: &Cuts) -> Vec<Vec<usize>> {
        let sees = |one: usize, other: &usize| {
            let pair = (Member(one), Member(*other));
            one != *other && !cuts.contains(&pair) && !cuts.contains(&(pair.1, pair.0))
        };
        (0..members).map(|one| (0..members).filter(|other| sees(one, other)).collect()).collect()
    }

    #[test]
    fn minority_is_less_than_half() {
        assert_eq!(seen(3, &minority(3, 1, 0)), [vec![2], vec![], vec![0]]);
        let five = minority(5, 4, 4);
        assert_eq!(seen(5, &five), [vec![4], vec![2, 3], vec![1, 3], vec![1, 2], vec![0]]);
        assert!(five.contains(&(Client(0), Member(1))) && !five.contains(&(Client(0), Member(4))));
        assert!(five.contains(&(Member(4), Client(1))) && !five.contains(&(Member(1), Client(1))));
    }

    #[test]
    fn halves_meet_in_one_member() {
        assert_eq!(seen(3, &bridge(3, 1)), [vec![1], vec![0, 2], vec![1]]);
        let five = [vec![1, 2, 3, 4], vec![0, 2], vec![0, 1], vec![0, 4], vec![0, 3]];
        assert_eq!(seen(5, &bridge(5, 0)), five);
    }

    #[test]
    fn one_way_is_not_the_other_way() {
        let out = [(Member(1), Member(0)), (Member(1), Member(2))];
        assert_eq!(one_way(3, 1, true), out.into());
        assert_eq!(one_way(3, 1, false), out.map(|(from, to)| (to, from)).into());
    }

    #[test]
    fn ring_has_neighbours_only() {
        let five = [vec![1, 4], vec![0, 2], vec![1, 3], vec![2, 4], vec![0, 3]];
        assert_eq!(seen(5, &ring(5)), five);
        let three = [(0, 2), (1, 0), (2, 1)].map(|(from, to)| (Member(from), Member(to)));
        assert_eq!(ring(3), three.into());
    }

    #[test]
    fn severed_member_sees_all_but_its_leader() {
        assert_eq!(seen(3, &severed(2, 0)), [vec![1], vec![0, 2], vec![1]]);
    }
}
