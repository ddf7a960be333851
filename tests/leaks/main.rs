//! What was used is given back: nothing grows from one use to the next, nor with time.
//!
//! The files of the whole process are counted: what opens some beside that belongs elsewhere.

mod cycles;
mod hours;
