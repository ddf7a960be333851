//! Bytes of a fuzzer, taken for choices. Where they end everything is zero.

use std::time::Duration;

/// The bytes that have not been read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    pub(crate) const fn new(input: &'a [u8]) -> Self {
        Self(input)
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn byte(&mut self) -> u8 {
        let (&byte, left) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = left;
        byte
    }

    pub(crate) fn number(&mut self) -> i32 {
        (0..4).fold(0, |number, _| number << 8 | i32::from(self.byte()))
    }

    /// Less than `bound`, which is not 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::from(self.byte()) % bound
    }

    pub(crate) fn pick<T: Clone>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())].clone()
    }

    /// As many bytes as the first one says, if there are so many.
    pub(crate) fn bytes(&mut self) -> &'a [u8] {
        let len = usize::from(self.byte()).min(self.0.len());
        let (bytes, left) = self.0.split_at(len);
        self.0 = left;
        bytes
    }

    /// Up to 25.5 s, in steps that grow.
    pub(crate) fn time(&mut self) -> Duration {
        let time = u64::from(self.byte());
        Duration::from_millis(if time < 100 { time } else { (time - 100) * 165 })
    }
}
