//! Durations as people write them: `1m 30s`, `250ms`, or a bare number.

use std::time::Duration;

/// Parses a duration; a bare number means seconds.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    parse(text, Duration::from_secs)
}

/// Parses a duration; a bare number means milliseconds.
pub(crate) fn millis(text: &str) -> Result<Duration, String> {
    parse(text, Duration::from_millis)
}

/// Parses a duration that servers can count: a millisecond or more. A bare number means milliseconds.
pub(crate) fn whole_millis(text: &str) -> Result<Duration, String> {
    let duration = millis(text)?;
    let counts = duration >= Duration::from_millis(1);
    counts.then_some(duration).ok_or_else(|| "less than a millisecond".to_owned())
}

fn parse(text: &str, bare: fn(u64) -> Duration) -> Result<Duration, String> {
    match text.parse() {
        Ok(number) => Ok(bare(number)),
        Err(_) => humantime::parse_duration(text)
            .map_err(|error| format!("{error}; such as 500ms, 30s or \"1m 30s\"")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bare_number_takes_the_options_unit() {
        assert_eq!(seconds("5"), Ok(Duration::from_secs(5)));
        assert_eq!(millis("5"), Ok(Duration::from_millis(5)));
        assert_eq!(seconds("0"), Ok(Duration::ZERO));
    }

    #[test]
    fn units_parse_and_nonsense_is_refused() {
        assert_eq!(seconds("1m 30s"), Ok(Duration::from_secs(90)));
        assert_eq!(millis("2s"), Ok(Duration::from_secs(2)));
        for text in ["", "-1", "5 parsecs", "s"] {
            assert!(seconds(text).is_err(), "{text:?}");
        }
    }
}
