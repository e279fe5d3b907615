// SPDX-License-Identifier: Apache-2.0
//! Finds sentences that are hard to read: in comments of Rust, assembly and TOML files, and in Markdown.
//!
//! The rules are cheap on purpose: each looks at the first word, at the length of a line, or for a few words.
//! [`docs/style.md`](../../../docs/style.md) says how a sentence should read instead.

/// A rule that text may break.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// The sentence opens with a clause such as "What it does" and is no question.
    Headless,
    /// The line has more than [`COLUMNS`] columns.
    Long,
    /// The documentation of a function does not open with a verb.
    Verbless,
    /// The sentence has one of [`NOBODY`] in the place of a noun.
    Nobody,
    /// The sentence says "that of" or "those of" in the place of a noun.
    ThatOf,
    /// The sentence says "behind".
    Behind,
    /// The sentence says "of its own" or "of their own".
    OfItsOwn,
    /// The sentence says "is none" or "none of".
    NoneOf,
}

/// A place that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The rule.
    pub rule: Rule,
    /// The line, from 1.
    pub line: usize,
    /// The first words of the sentence or line.
    pub text: String,
}

/// The longest line of a comment or of Markdown text. Tables and listings may be wider.
const COLUMNS: usize = 110;

/// Words between "of" and "own".
const OWNERS: &[&str] = &["its", "their", "one's"];

/// Words that open a clause without a head.
const HEADLESS: &[&str] = &["What", "Who", "Whose", "How", "Whether"];

/// Words that hide the subject: the sentence can name the vCPU, the partition or the program instead.
const NOBODY: &[&str] = &["nobody", "somebody", "whoever", "whatever"];

/// Words that open the documentation of a function and are no verbs.
const NO_VERBS: &[&str] = &[
    "A", "After", "All", "An", "And", "Any", "As", "At", "Before", "Bits", "Both", "By", "Bytes", "Each",
    "Every", "First", "For", "From", "How", "If", "In", "Index", "Is", "It", "Its", "Last", "Level", "Like",
    "No", "Nobody", "Nothing", "Number", "Of", "On", "One", "Only", "Same", "Size", "So", "Some", "That",
    "The", "There", "These", "This", "Ticks", "To", "Two", "What", "When", "Where", "Whether", "Which",
    "Who", "Whom", "Whose", "Why", "With", "Without",
];

/// Returns all findings in a file, in the order of its lines.
pub fn findings(name: &str, text: &str) -> Vec<Finding> {
    let lines = prose_lines(name, text);
    let mut found: Vec<Finding> = long_lines(text, &lines).collect();
    for paragraph in paragraphs(&lines) {
        let sentences = sentences(&paragraph);
        found.extend(
            sentences
                .iter()
                .filter_map(|(line, sentence)| headless(*line, sentence)),
        );
        found.extend(habits(&paragraph));
    }
    if name.ends_with(".rs") {
        found.extend(verbless(text));
    }
    found.sort_by_key(|finding| (finding.line, finding.rule));
    found
}

/// A line of text: its number, and the text without the marker of a comment.
type Line<'a> = (usize, &'a str);

/// Returns a file's lines of text. Code between two comments is an empty line.
fn prose_lines<'a>(name: &str, text: &'a str) -> Vec<Line<'a>> {
    let marker = match name.rsplit('.').next() {
        Some("md") => None,
        Some("toml") => Some("#"),
        _ => Some("//"),
    };
    let strip = |line: &'a str| match marker {
        // In Markdown a line that is indented by four spaces is a listing.
        None if line.starts_with("    ") => "",
        None => line,
        // The licence line ends no sentence: what follows it begins a new one.
        Some(marker) => comment(line, marker)
            .filter(|text| !text.trim_start().starts_with("SPDX"))
            .unwrap_or(""),
    };
    (1..).zip(text.lines().map(strip)).collect()
}

/// Returns the text of a line that is a comment.
fn comment<'a>(line: &'a str, marker: &str) -> Option<&'a str> {
    let rest = line.trim_start().strip_prefix(marker)?;
    Some(rest.trim_start_matches(['/', '!']))
}

/// Returns the lines that are too long. Tables, listings, pictures and lone addresses cannot be broken.
fn long_lines<'a>(text: &'a str, lines: &'a [Line<'a>]) -> impl Iterator<Item = Finding> + 'a {
    let mut in_listing = false;
    text.lines().zip(lines).filter_map(move |(whole, (line, prose))| {
        let prose = prose.trim_start();
        in_listing ^= prose.starts_with("```");
        let can_be_broken = !in_listing && !prose.starts_with(['|', '!']) && prose.contains(' ');
        (can_be_broken && whole.chars().count() > COLUMNS).then(|| Finding {
            rule: Rule::Long,
            line: *line,
            text: start_of(prose),
        })
    })
}

/// Returns the paragraphs: list items, headings and the cells of tables are paragraphs of their own.
fn paragraphs<'a>(lines: &[Line<'a>]) -> Vec<Vec<Line<'a>>> {
    let mut all = vec![Vec::new()];
    let mut in_listing = false;
    for (index, &(number, text)) in lines.iter().enumerate() {
        let text = text.trim();
        in_listing ^= text.starts_with("```");
        let is_alone = text.starts_with('#') || text.starts_with('|');
        if in_listing || text.is_empty() || is_alone || text.starts_with("```") || item(text).is_some() {
            all.push(Vec::new());
        }
        if in_listing || text.starts_with("```") || text.starts_with("<!--") {
            continue;
        }
        if text.starts_with('|') {
            let next = lines.get(index + 1).map_or("", |(_, next)| next.trim());
            let is_heading = next.starts_with("|-") || next.starts_with("|:");
            let cells = text.split('|').filter(|_| !is_heading);
            all.extend(cells.map(|cell| vec![(number, cell.trim())]));
        } else if let Some(last) = all.last_mut() {
            last.push((number, item(text).unwrap_or(text).trim_start_matches(['#', ' '])));
        }
        if is_alone {
            all.push(Vec::new());
        }
    }
    all
}

/// Returns the text of a list item.
fn item(text: &str) -> Option<&str> {
    let rest = text.trim_start_matches(|letter: char| letter.is_ascii_digit());
    let numbered = if rest.len() < text.len() {
        rest.strip_prefix(". ")
    } else {
        None
    };
    text.strip_prefix("- ").or(text.strip_prefix("* ")).or(numbered)
}

/// Splits a paragraph into its sentences, each with the line on which it begins.
fn sentences(paragraph: &[Line<'_>]) -> Vec<(usize, String)> {
    let mut all: Vec<(usize, String)> = Vec::new();
    let mut at_start = true;
    for (number, word) in paragraph
        .iter()
        .flat_map(|(number, text)| text.split_whitespace().map(|word| (*number, word)))
    {
        match all.last_mut() {
            Some((_, sentence)) if !at_start => *sentence = format!("{sentence} {word}"),
            _ => all.push((number, word.to_owned())),
        }
        at_start = word.trim_end_matches(BRACKETS).ends_with(['.', '!', '?']);
    }
    all
}

/// Signs that may stand between the end of a sentence and a space, or before its first letter.
const BRACKETS: &[char] = &[')', ']', '(', '[', '*', '_', '"'];

fn headless(line: usize, sentence: &str) -> Option<Finding> {
    let is_question = sentence.trim_end_matches(BRACKETS).ends_with('?');
    (opens_with(sentence, HEADLESS) && !is_question).then(|| Finding {
        rule: Rule::Headless,
        line,
        text: start_of(sentence),
    })
}

/// Returns the words of a paragraph that a plainer sentence does without.
fn habits(paragraph: &[Line<'_>]) -> Vec<Finding> {
    let words: Vec<(usize, &str, String)> = paragraph
        .iter()
        .flat_map(|(line, text)| {
            text.split_whitespace()
                .map(move |word| (*line, *text, plain(word)))
        })
        .collect();
    let habit = |(index, (line, text, word)): (usize, &(usize, &str, String))| {
        let after = |count: usize| words.get(index + count).map_or("", |(_, _, word)| word.as_str());
        let next = after(1);
        let rule = match word.as_str() {
            word if NOBODY.contains(&word) => Rule::Nobody,
            "that" | "those" if next == "of" => Rule::ThatOf,
            "behind" => Rule::Behind,
            "of" if OWNERS.contains(&next) && after(2) == "own" => Rule::OfItsOwn,
            "none" if next == "of" => Rule::NoneOf,
            "is" | "are" | "was" if next == "none" && after(2) != "of" => Rule::NoneOf,
            _ => return None,
        };
        Some(Finding {
            rule,
            line: *line,
            text: text.trim().to_owned(),
        })
    };
    words.iter().enumerate().filter_map(habit).collect()
}

/// Returns a word in small letters without the signs around it. A word in quotes or of code is none.
fn plain(word: &str) -> String {
    if word.starts_with(['"', '`']) || word.starts_with("[`") {
        return String::new();
    }
    word.trim_matches(|letter: char| !letter.is_alphanumeric())
        .to_lowercase()
}

fn opens_with(sentence: &str, words: &[&str]) -> bool {
    let first = sentence.split_whitespace().next().unwrap_or("");
    let first = first.trim_start_matches(BRACKETS);
    let first = first.split(|letter: char| !letter.is_alphabetic()).next();
    first.is_some_and(|first| words.contains(&first))
}

fn start_of(text: &str) -> String {
    text.trim().chars().take(60).collect()
}

/// Returns the functions whose documentation does not open with a verb.
fn verbless(text: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut documentation: Option<Line<'_>> = None;
    for (number, line) in (1..).zip(text.lines().map(str::trim)) {
        if let Some(text) = line.strip_prefix("///") {
            documentation.get_or_insert((number, text.trim()));
            continue;
        }
        if is_function(line)
            && let Some((line, text)) = documentation
            && opens_with(text, NO_VERBS)
        {
            found.push(Finding {
                rule: Rule::Verbless,
                line,
                text: start_of(text),
            });
        }
        // Attributes and plain comments may stand between the documentation and the function.
        if !line.starts_with("#[") && !line.starts_with("//") {
            documentation = None;
        }
    }
    found
}

fn is_function(line: &str) -> bool {
    let before = line.split("fn ").next().unwrap_or(line);
    let is_before_name = |word: &str| {
        let word = word.split('(').next().unwrap_or(word);
        [
            "pub", "const", "unsafe", "extern", "\"C\"", "async", "default", "in", "super)",
        ]
        .contains(&word)
    };
    before.len() < line.len() && before.split_whitespace().all(is_before_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(name: &str, text: &str, rule: Rule) -> Vec<usize> {
        let of_rule = |finding: &Finding| finding.rule == rule;
        findings(name, text)
            .iter()
            .filter(|finding| of_rule(finding))
            .map(|finding| finding.line)
            .collect()
    }

    #[test]
    fn headless_openers_are_found_wherever_a_sentence_begins() {
        let text = "// One sentence. What\n// follows is headless.\nlet a = \"What\";\n/// Whether it is so.\n//! - Who runs\n";
        assert_eq!(lines("a.rs", text, Rule::Headless), [1, 4, 5]);
        let text = "// SPDX-License-Identifier: Apache-2.0\n//! Whose it is\n";
        assert_eq!(lines("a.rs", text, Rule::Headless), [2]);
        let text = "# How it works\n\nIt works (mostly). **Who** asks is told.\n\n1. Whose turn comes\n";
        assert_eq!(lines("a.md", text, Rule::Headless), [1, 3, 5]);
        assert_eq!(
            lines("a.toml", "# How\nkey = 1\nother = \"What\"\n", Rule::Headless),
            [1]
        );
    }

    #[test]
    fn questions_headings_of_tables_and_listings_are_excepted() {
        let text = "What is\nit? However it is, the rest whose\nWhat?\n\n| What | How |\n|---|---|\n| How so | b |\n\n```\nWhat\n```\n";
        assert_eq!(lines("a.md", text, Rule::Headless), [7]);
    }

    #[test]
    fn long_lines_of_text_are_found_and_code_and_tables_are_not() {
        let long = "word ".repeat(22) + "w";
        let text = format!("// {long}\nlet a = \"{long}\";\n// {}\n", &long[..107]);
        assert_eq!(lines("a.rs", &text, Rule::Long), [1]);
        let text = format!(
            "| {long} |\n{long}\n```\n{long}\n```\n[{}](a)\n",
            long.replace(' ', "-")
        );
        assert_eq!(lines("a.md", &text, Rule::Long), [2]);
        assert_eq!(
            lines("a.md", &format!("a:\n\n    {long}\n![{long}](b)\n"), Rule::Long),
            [0; 0]
        );
    }

    #[test]
    fn habits_are_counted_word_by_word() {
        let text =
            "// Nobody waits behind whoever\n// came, in that\n// of those of it.\nlet behind = nobody;\n";
        assert_eq!(lines("a.rs", text, Rule::Nobody), [1, 1]);
        assert_eq!(lines("a.rs", text, Rule::ThatOf), [2, 3]);
        assert_eq!(lines("a.rs", text, Rule::Behind), [1]);
        let text = "// It is none of its\n// own, and there is none.\n";
        assert_eq!(lines("a.rs", text, Rule::OfItsOwn), [1]);
        assert_eq!(lines("a.rs", text, Rule::NoneOf), [1, 2]);
        assert_eq!(
            lines("a.md", "| a |\n|---|\n| `behind` is behind. |\n", Rule::Behind),
            [3]
        );
    }

    #[test]
    fn documentation_of_functions_opens_with_a_verb() {
        let text = "/// The number.\n#[must_use]\npub(crate) const unsafe fn a() {}\n/// Returns it.\nfn b() {}\n/// The kind.\nstruct C;\n/// Where\n/// it is.\nfn d() {}\n";
        assert_eq!(lines("a.rs", text, Rule::Verbless), [1, 8]);
        assert_eq!(
            lines("a.rs", "/// A call.\nlet a = fn_of(b);\n", Rule::Verbless),
            [0; 0]
        );
    }
}
