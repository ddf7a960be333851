//! `numbered!`: a list of names and numbers becomes a newtype that loses no number.

/// Makes an `i32` newtype with a constant for each number that has a name.
///
/// Unknown numbers survive decoding and encoding; they print as the number.
macro_rules! numbered {
    ($(#[$meta:meta])* $type:ident { $($(#[$doc:meta])* $constant:ident = $number:literal $name:literal),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize))]
        pub struct $type(pub i32);

        impl $type {
            $($(#[$doc])* pub const $constant: Self = Self($number);)*

            /// All numbers that have a name here.
            pub const KNOWN: &[Self] = &[$(Self::$constant),*];

            /// The protocol's name for this number, if it has one.
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($number => Some($name),)*
                    _ => None,
                }
            }
        }

        impl core::fmt::Debug for $type {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                match self.name() {
                    Some(name) => write!(f, "{name}({})", self.0),
                    None => write!(f, "{}({})", stringify!($type), self.0),
                }
            }
        }

        impl core::fmt::Display for $type {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                match self.name() {
                    Some(name) => f.write_str(name),
                    None => write!(f, "{}", self.0),
                }
            }
        }

        crate::jute::newtype_codec!($type(i32));
    };
}

pub(crate) use numbered;
