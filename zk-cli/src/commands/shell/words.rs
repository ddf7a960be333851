//! A line that is being typed, up to the cursor: the words before, and the one that is not complete.

/// Words as the shell splits them, the last of which may go on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Typed {
    pub(crate) before: Vec<String>,
    /// What there is of the last one, without quotes.
    pub(crate) last: String,
    /// Where that begins, its quote included.
    pub(crate) start: usize,
    /// The quote that it stands in.
    pub(crate) quote: Option<char>,
}

impl Typed {
    pub(crate) fn read(line: &str) -> Self {
        let (mut before, mut last, mut start) = (Vec::new(), String::new(), line.len());
        let (mut quote, mut is_word) = (None, false);
        let mut chars = line.char_indices();
        while let Some((at, c)) = chars.next() {
            if quote.is_none() && c.is_whitespace() {
                if is_word {
                    before.push(std::mem::take(&mut last));
                }
                (is_word, start) = (false, line.len());
                continue;
            }
            if !is_word {
                (is_word, start) = (true, at);
            }
            match (c, quote) {
                ('\\', None) => last.extend(chars.next().map(|(_, c)| c)),
                ('\\', Some('"')) => {
                    let next = chars.next().map(|(_, c)| c);
                    let is_escaped = next.is_none_or(|c| matches!(c, '"' | '\\' | '$' | '`'));
                    last.extend((!is_escaped).then_some('\\').into_iter().chain(next));
                }
                (c, Some(open)) if c == open => quote = None,
                ('\'' | '"', None) => quote = Some(c),
                _ => last.push(c),
            }
        }
        Self { before, last, start, quote }
    }

    /// A word in the place of the last one; `is_all` if it does not go on.
    pub(crate) fn written(&self, word: &str, is_all: bool) -> String {
        let end = if is_all { " " } else { "" };
        match self.quote {
            Some(quote) if !(quote == '\'' && word.contains('\'')) => {
                let mut written = String::from(quote);
                for c in word.chars() {
                    if quote == '"' && matches!(c, '"' | '\\' | '$' | '`') {
                        written.push('\\');
                    }
                    written.push(c);
                }
                if is_all { format!("{written}{quote}{end}") } else { written }
            }
            _ => {
                let mut written = String::new();
                for c in word.chars() {
                    if c.is_whitespace() || matches!(c, '\'' | '"' | '\\' | '#' | '$' | '`') {
                        written.push('\\');
                    }
                    written.push(c);
                }
                written + end
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> (Vec<String>, String, usize, Option<char>) {
        let Typed { before, last, start, quote } = Typed::read(line);
        (before, last, start, quote)
    }

    #[test]
    fn last_word_is_found_in_quotes() {
        assert_eq!(read(""), (vec![], "".into(), 0, None));
        assert_eq!(read("ls"), (vec![], "ls".into(), 0, None));
        assert_eq!(read("ls "), (vec!["ls".into()], "".into(), 3, None));
        assert_eq!(read("get /a\\ b"), (vec!["get".into()], "/a b".into(), 4, None));
        assert_eq!(read("get '/a b"), (vec!["get".into()], "/a b".into(), 4, Some('\'')));
        assert_eq!(
            read("set '' \"x\\\""),
            (vec!["set".into(), "".into()], "x\"".into(), 7, Some('"'))
        );
    }

    #[test]
    fn words_are_split_as_by_the_shell() {
        for line in [r#"a "b\c\"\\\$" \d 'e\f'"#, "a b#c 'd # e'", "  a\tb  "] {
            let read = Typed::read(&format!("{line} ")).before;
            assert_eq!(Some(read), shlex::split(line), "{line}");
        }
    }

    #[test]
    fn words_are_read_as_they_are_written() {
        for word in ["/a", "/a b", "/it's", "/a\"b\\c", "/日 本", "/#x", "/$x`"] {
            for begin in ["", "'", "\""] {
                let typed = Typed::read(begin);
                let written = typed.written(word, true);
                assert_eq!(shlex::split(&written), Some(vec![word.to_owned()]), "{written}");
                let on = typed.written(word, false);
                assert_eq!(Typed::read(&on).last, word, "{on}");
            }
        }
    }
}
