//! What was used is given back: nothing grows from one use to the next, nor with time.

mod cycles;
mod hostile;
mod hours;
mod listings;
mod pipeline;
