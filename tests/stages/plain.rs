//! Pages without what always differs between two settings.

use std::{collections::BTreeSet, sync::LazyLock};

use regex::{Captures, Regex};

macro_rules! pattern {
    ($name:ident = $text:literal) => {
        static $name: LazyLock<Regex> = LazyLock::new(|| Regex::new($text).expect("a pattern"));
    };
}

pattern!(SEQUENTIAL = r#"(?:[^\s/"(\[]*[^\d\s/"(\[])?(\d{10,})\b"#);
pattern!(NUMBER = r"FencingToken\((\d+)\)|Zxid\(0x([0-9a-f]+)\)");
// Old releases do not say it.
pattern!(ZXID_OF_EVENT = r", zxid: (?:None|Some\(Zxid\([^)]*\)\))");
pattern!(TIME = r"\b(\d+(?:\.\d+)?)(ns|µs|ms|s)\b");
pattern!(TOOK = r"(?m)^( *\d+) ");
pattern!(REQUESTS = r"(?m)  <- .*$");
pattern!(STATS = r"(?m)^.*\.stats\(\) = .*\n");

/// What of two pages is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detail {
    /// Everything but names, and numbers that are compared with each other only.
    All,
    /// Of that, what calls return, and about when.
    Results,
}

/// A section of a page, with as much of it as is compared.
pub(crate) fn plain(section: &str, detail: Detail) -> String {
    let named = |found: &Captures<'_>| {
        // Longer numbers are times.
        if found[1].len() == 10 { format!("#{}", &found[1]) } else { found[0].to_owned() }
    };
    let text = SEQUENTIAL.replace_all(&in_order(section), named).into_owned();
    if detail == Detail::All {
        return text;
    }
    let text = STATS.replace_all(&text, "");
    let text = ZXID_OF_EVENT.replace_all(&text, "");
    let text = REQUESTS.replace_all(&text, "");
    let text = TIME.replace_all(&text, |found: &Captures<'_>| {
        let scale = match &found[2] {
            "ns" => 1e-9,
            "µs" => 1e-6,
            "ms" => 1e-3,
            _ => 1.0,
        };
        about(found[1].parse::<f64>().expect("a number") * scale)
    });
    let took = |found: &Captures<'_>| {
        // Titles are not as far to the right.
        if found[1].len() < 7 {
            return found[0].to_owned();
        }
        about(found[1].trim().parse::<f64>().expect("a number") / 1e3) + " "
    };
    TOOK.replace_all(&text, took).into_owned()
}

/// Numbers of transactions: which one is greater is what matters.
fn in_order(section: &str) -> String {
    let number = |found: &Captures<'_>| match found.get(1) {
        Some(decimal) => decimal.as_str().parse::<i64>(),
        None => i64::from_str_radix(&found[2], 16),
    };
    let number = |found: &Captures<'_>| number(found).expect("a number");
    let all: BTreeSet<_> = NUMBER.captures_iter(section).map(|found| number(&found)).collect();
    let place = |found: &Captures<'_>| {
        let place = all.range(..number(found)).count();
        if found.get(1).is_some() {
            format!("FencingToken(#{place})")
        } else {
            format!("Zxid(#{place})")
        }
    };
    NUMBER.replace_all(section, place).into_owned()
}

/// To half a second.
fn about(seconds: f64) -> String {
    format!("~{:>4.1}s", (seconds * 2.0).round() / 2.0)
}
