/// `SplitMix64`: the same choices from the same seed, for ever.
#[derive(Clone, Debug)]
pub struct Chance(u64);

impl Chance {
    /// Chance from a seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Chance for the `index`-th of many, as if each had a seed of its own.
    pub fn stream(seed: u64, index: u64) -> Self {
        let mut mixed = Self(seed ^ index.rotate_left(32).wrapping_mul(0xA24B_AED4_963E_E407));
        Self(mixed.draw())
    }

    /// Any number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `bound`, which is not 0.
    pub fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.draw() % bound as u64).expect("it is below a usize")
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// Any of these.
    pub fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())].clone()
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
