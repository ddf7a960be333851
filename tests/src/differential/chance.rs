use zk_testkit::sim::Rng;

/// What makes up sequences: the same choices from the same seed, for ever.
#[derive(Clone, Debug)]
pub struct Chance(Rng);

impl Chance {
    /// Chance from a seed.
    pub const fn new(seed: u64) -> Self {
        Self(Rng::new(seed))
    }

    /// Chance for the `index`-th of many, as if each had a seed of its own.
    pub const fn stream(seed: u64, index: u64) -> Self {
        let mixed = seed ^ index.rotate_left(32).wrapping_mul(0xA24B_AED4_963E_E407);
        Self::new(Rng::new(mixed).next())
    }

    /// Any number.
    pub const fn draw(&mut self) -> u64 {
        self.0.next()
    }

    /// A number below `bound`, which is not 0.
    pub const fn below(&mut self, bound: usize) -> usize {
        self.0.index(bound)
    }

    /// True once in `n` times.
    pub const fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// Any of these.
    pub fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        self.0.pick(from).clone()
    }

    /// Any of these, each as often as its weight says.
    pub fn weighted<T: Clone>(&mut self, from: &[(usize, T)]) -> T {
        let mut left = self.below(from.iter().map(|(weight, _)| weight).sum());
        for (weight, value) in from {
            if left < *weight {
                return value.clone();
            }
            left -= weight;
        }
        unreachable!("what is left is below the sum of the weights")
    }
}
