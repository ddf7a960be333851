//! All mutants of a file in one text: a mutated function has a body for each mutant, and asks a switch which to run.
//!
//! Each patch is applied to the product alone. So patches may change the same lines.

use std::fmt::Write as _;

use crate::patch::Edit;

/// The lines that begin a function, open its body, and close it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Body {
    begin: usize,
    open: usize,
    close: usize,
}

/// A mutant's number and name, and what it changes in a file.
pub(crate) struct Variant<'a> {
    pub(crate) number: usize,
    pub(crate) name: &'a str,
    pub(crate) edits: Vec<Edit>,
}

/// Puts all variants of a file into it.
pub(crate) fn merge(text: &str, variants: &[Variant<'_>]) -> Result<String, String> {
    let lines: Vec<&str> = text.lines().collect();
    let mut mutated = Vec::new();
    for variant in variants {
        for edit in &variant.edits {
            let body = body_around(&lines, edit);
            let body = body.map_err(|error| format!("{}: {error}", variant.name))?;
            mutated.push((body, variant));
        }
    }
    mutated.sort_by_key(|(body, variant)| (body.open, variant.number));
    mutated.dedup_by_key(|(body, variant)| (body.open, variant.number));
    let mut merged = String::new();
    for (at, line) in lines.iter().enumerate() {
        for _ in mutated.iter().filter(|(body, _)| body.close == at).take(1) {
            merged.push_str("}\n");
        }
        let _ = writeln!(merged, "{line}");
        let here = mutated.iter().filter(|(body, _)| body.open == at);
        for (place, (body, Variant { number, name, edits })) in here.enumerate() {
            let or = if place > 0 { "} else " } else { "" };
            let _ = writeln!(merged, "{or}if crate::mutant::is({number}) {{ // {name}");
            for line in mutant(&lines, *body, edits) {
                let _ = writeln!(merged, "{line}");
            }
        }
        if mutated.iter().any(|(body, _)| body.open == at) {
            merged.push_str("} else {\n");
        }
    }
    Ok(merged)
}

/// A body as one mutant has it.
fn mutant<'a>(lines: &[&'a str], body: Body, edits: &'a [Edit]) -> Vec<&'a str> {
    let mut out = Vec::new();
    let mut at = body.open + 1;
    for edit in
        edits.iter().filter(|edit| body.open < edit.lines.start && edit.lines.end <= body.close)
    {
        out.extend(&lines[at..edit.lines.start]);
        out.extend(edit.new.iter().map(String::as_str));
        at = edit.lines.end;
    }
    out.extend(&lines[at..body.close]);
    out
}

/// The body of the innermost function around an edit.
fn body_around(lines: &[&str], edit: &Edit) -> Result<Body, String> {
    let range = &edit.lines;
    let bodies = (0..range.start).rev().filter_map(|at| body(lines, at));
    let mut around = bodies.filter(|it| it.open < range.start && range.end <= it.close);
    let body = around.next().ok_or_else(|| {
        let line = lines.get(range.start).map_or("", |line| line.trim());
        format!("changes what is in no function: {line}")
    })?;
    let header = lines[body.begin..=body.open].join(" ");
    if header.split_once("-> ").is_some_and(|(_, returned)| returned.contains("impl ")) {
        return Err(
            "changes a function that returns `impl Trait`: so its bodies may differ in type"
                .to_owned(),
        );
    }
    Ok(body)
}

/// The body of the function that begins at a line, as rustfmt writes it: it is opened by the first line of the same
/// indentation that ends in a brace, and closed by the next one that is a brace.
fn body(lines: &[&str], begin: usize) -> Option<Body> {
    let line = lines.get(begin)?;
    let indentation = line.len() - line.trim_start().len();
    is_function(line.trim_start()).then_some(())?;
    let is_level = |line: &str| {
        line.len() > indentation
            && line.is_char_boundary(indentation)
            && line[..indentation].trim().is_empty()
            && !line[indentation..].starts_with(' ')
    };
    let mut level = (begin..lines.len()).filter(|&at| is_level(lines[at]));
    let open = level.find(|&at| lines[at].ends_with(['{', ';', '}']))?;
    lines[open].ends_with('{').then_some(())?;
    let close = level.find(|&at| &lines[at][indentation..] == "}")?;
    Some(Body { begin, open, close })
}

fn is_function(line: &str) -> bool {
    let mut line = line;
    if let Some(rest) = line.strip_prefix("pub") {
        line = match rest.strip_prefix('(') {
            Some(rest) => rest.split_once(')').map_or("", |(_, rest)| rest),
            None => rest,
        };
    }
    line.trim_start().trim_start_matches("async ").starts_with("fn ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
impl X {
    pub(crate) async fn one<T>(&self) -> u32
    where
        T: Y,
    {
        if self.a {
            return 1;
        }
        2
    }

    fn two(&self) {}

    fn three(
        &self,
    ) -> u32 {
        3
    }

    fn four(&self) -> impl Iterator<Item = u32> {
        self.four.iter().filter(|it| it > 4)
    }
}
";

    fn edit(lines: std::ops::Range<usize>, new: &str) -> Vec<Edit> {
        vec![Edit { lines, new: new.lines().map(str::to_owned).collect() }]
    }

    fn merged(variants: &[(&str, Vec<Edit>)]) -> Result<String, String> {
        let variants = variants.iter().enumerate();
        let variants =
            variants.map(|(number, (name, edits))| Variant { number, name, edits: edits.clone() });
        merge(TEXT, &variants.collect::<Vec<_>>())
    }

    #[test]
    fn mutants_of_the_same_line_do_not_meet() {
        let text = merged(&[
            ("A", edit(8..9, "        4")),
            ("B", edit(8..9, "")),
            ("C", edit(16..17, "0")),
        ]);
        let expected = TEXT
            .replace(
                "    {\n        if",
                "    {
if crate::mutant::is(0) { // A
        if self.a {
            return 1;
        }
        4
} else if crate::mutant::is(1) { // B
        if self.a {
            return 1;
        }
} else {
        if",
            )
            .replace("        2\n", "        2\n}\n")
            .replace("        3\n", "if crate::mutant::is(2) { // C\n0\n} else {\n        3\n}\n");
        assert_eq!(text, Ok(expected));
    }

    #[test]
    fn a_signature_has_no_mutants() {
        let error = "A: changes what is in no function: &self,".to_owned();
        assert_eq!(merged(&[("A", edit(14..15, "self"))]), Err(error));
    }

    #[test]
    fn bodies_of_a_type_of_their_own_have_no_mutants() {
        let error =
            "A: changes a function that returns `impl Trait`: so its bodies may differ in type";
        assert_eq!(merged(&[("A", edit(20..21, "self.four.iter()"))]), Err(error.to_owned()));
    }
}
