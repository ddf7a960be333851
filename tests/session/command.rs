//! The words of a command: `submit get /a as=g1 resend` has three words and an option.

use std::{collections::VecDeque, time::Duration};

use bytes::{Bytes, BytesMut};
use zk_proto::{
    ErrorCode,
    session::{DriverFault, LinkError},
};

/// What is wrong with a command.
pub(crate) type Error = String;

/// The words of a command that have not been understood yet.
#[derive(Clone, Debug)]
pub(crate) struct Args<'a>(VecDeque<&'a str>);

impl<'a> Args<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self(text.split_whitespace().collect())
    }

    /// Splits a list of commands at the word `then`.
    pub(crate) fn alternatives(text: &'a str) -> impl Iterator<Item = Self> {
        text.split(" then ").map(Self::new)
    }

    /// Takes the next word that is not an option.
    pub(crate) fn word(&mut self, what: &str) -> Result<&'a str, Error> {
        self.next_word().ok_or_else(|| format!("{what} is missing"))
    }

    pub(crate) fn next_word(&mut self) -> Option<&'a str> {
        let index = self.0.iter().position(|word| !is_option(word))?;
        self.0.remove(index)
    }

    /// Takes the option `name=…`.
    pub(crate) fn option(&mut self, name: &str) -> Option<&'a str> {
        let is_it = |word: &&str| word.split_once('=').is_some_and(|(key, _)| key == name);
        let index = self.0.iter().position(is_it)?;
        self.0.remove(index).and_then(|word| word.split_once('=')).map(|(_, value)| value)
    }

    /// Takes the option `name=…` as a number, which may be hexadecimal.
    pub(crate) fn number(&mut self, name: &str) -> Result<Option<i64>, Error> {
        self.option(name).map(number).transpose()
    }

    /// Takes the option `name=…` as a duration.
    pub(crate) fn duration(&mut self, name: &str) -> Result<Option<Duration>, Error> {
        self.option(name).map(duration).transpose()
    }

    /// Takes the word `name`, if it is there.
    pub(crate) fn flag(&mut self, name: &str) -> bool {
        let index = self.0.iter().position(|word| *word == name);
        index.and_then(|index| self.0.remove(index)).is_some()
    }

    /// Takes all words that are left as one run of hexadecimal digits.
    pub(crate) fn hex(&mut self) -> Result<Bytes, Error> {
        let digits = self.0.drain(..).collect::<String>();
        let mut bytes = BytesMut::new();
        for pair in digits.as_bytes().chunks(2) {
            let pair = std::str::from_utf8(pair).map_err(|error| error.to_string())?;
            let byte = u8::from_str_radix(pair, 16).map_err(|error| format!("{pair}: {error}"))?;
            bytes.extend_from_slice(&[byte]);
        }
        Ok(bytes.freeze())
    }

    /// Insists that all words have been understood.
    pub(crate) fn finish(&self) -> Result<(), Error> {
        match self.0.front() {
            Some(word) => Err(format!("what is {word:?}?")),
            None => Ok(()),
        }
    }
}

/// `a=b`, but not `/a=b`: paths are words.
fn is_option(word: &str) -> bool {
    !word.starts_with('/') && word.contains('=')
}

pub(crate) fn number(text: &str) -> Result<i64, Error> {
    let hex =
        text.strip_prefix("0x").map(|hex| u64::from_str_radix(hex, 16).map(|number| number as i64));
    hex.unwrap_or_else(|| text.parse()).map_err(|error| format!("{text}: {error}"))
}

/// An `i32` from a number that fits.
pub(crate) fn int(number: i64) -> Result<i32, Error> {
    i32::try_from(number).map_err(|error| format!("{number}: {error}"))
}

/// `250ms`, `6s`, `2m`, `1h`.
pub(crate) fn duration(text: &str) -> Result<Duration, Error> {
    let unit = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (count, unit) = text.split_at(unit);
    let count = count.parse::<u64>().map_err(|error| format!("{text}: {error}"))?;
    match unit {
        "ms" => Ok(Duration::from_millis(count)),
        "s" => Ok(Duration::from_secs(count)),
        "m" => Ok(Duration::from_secs(60 * count)),
        "h" => Ok(Duration::from_secs(3600 * count)),
        _ => Err(format!("{text}: not in ms, s, m or h")),
    }
}

/// An error code by its name or number.
pub(crate) fn code(text: &str) -> Result<ErrorCode, Error> {
    let known = ErrorCode::KNOWN.iter().find(|code| code.name() == Some(text));
    known.map_or_else(|| int(number(text)?).map(ErrorCode), |code| Ok(*code))
}

pub(crate) fn link_error(text: &str) -> Result<LinkError, Error> {
    match text {
        "refused" => Ok(LinkError::Refused),
        "reset" => Ok(LinkError::Reset),
        "closed" => Ok(LinkError::Closed),
        "timed-out" => Ok(LinkError::TimedOut),
        "unresolved" => Ok(LinkError::Driver(DriverFault::new("name not resolved: no such name"))),
        _ => Err(format!("{text}: not refused, reset, closed, timed-out or unresolved")),
    }
}
