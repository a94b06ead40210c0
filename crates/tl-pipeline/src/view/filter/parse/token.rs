//! The words, numbers and signs of a filter.

use tbl_io::Escaped;

use crate::error::FilterError;
use crate::view::filter::Comparison;
use crate::view::filter::value::Value;

/// A token of a filter.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token<'t> {
    Word(&'t str),
    /// The text of a file by a name that may be built in: `field:width`.
    Field(&'t str),
    /// A value in the JSON of a file: `json:/score`.
    Pointer {
        name: &'t str,
        pointer: String,
    },
    Number(Value<'static>),
    Text(String),
    Symbol(Symbol),
    End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Symbol {
    Open,
    Close,
    Comma,
    Plus,
    Minus,
    Times,
    Slash,
    Compare(Comparison),
}

/// Signs, longer ones first.
const SYMBOLS: [(&str, Symbol); 13] = [
    ("==", Symbol::Compare(Comparison::Equal)),
    ("!=", Symbol::Compare(Comparison::Unequal)),
    ("<=", Symbol::Compare(Comparison::AtMost)),
    (">=", Symbol::Compare(Comparison::AtLeast)),
    ("<", Symbol::Compare(Comparison::Less)),
    (">", Symbol::Compare(Comparison::Greater)),
    ("(", Symbol::Open),
    (")", Symbol::Close),
    (",", Symbol::Comma),
    ("+", Symbol::Plus),
    ("-", Symbol::Minus),
    ("*", Symbol::Times),
    ("/", Symbol::Slash),
];

/// The tokens of a text, read one by one.
pub(super) struct Tokens<'t> {
    text: &'t str,
    /// The offset of the next token, and the token.
    peeked: (usize, Token<'t>),
    /// The tokens after it, and their offsets.
    rest: std::vec::IntoIter<(usize, Token<'t>)>,
}

impl<'t> Tokens<'t> {
    pub(super) fn new(text: &'t str) -> Result<Self, FilterError> {
        let mut tokens = Vec::new();
        let mut at = 0;
        loop {
            at = text.len() - text[at..].trim_start().len();
            if at == text.len() {
                break;
            }
            let (token, len) = read(text, at)?;
            tokens.push((at, token));
            at += len;
        }
        let mut rest = tokens.into_iter();
        let peeked = rest.next().unwrap_or((text.len(), Token::End));
        Ok(Self { text, peeked, rest })
    }

    pub(super) fn peek(&self) -> &Token<'t> {
        &self.peeked.1
    }

    /// The offset of the next token.
    pub(super) fn at(&self) -> usize {
        self.peeked.0
    }

    pub(super) fn next(&mut self) {
        self.peeked = self.rest.next().unwrap_or((self.text.len(), Token::End));
    }

    pub(super) fn is(&self, symbol: Symbol) -> bool {
        *self.peek() == Token::Symbol(symbol)
    }

    pub(super) fn take(&mut self, symbol: Symbol) -> bool {
        let is = self.is(symbol);
        if is {
            self.next();
        }
        is
    }

    pub(super) fn require(
        &mut self,
        symbol: Symbol,
        expected: &'static str,
    ) -> Result<(), FilterError> {
        if self.take(symbol) { Ok(()) } else { Err(self.unexpected(expected)) }
    }

    pub(super) fn is_word(&self, word: &str) -> bool {
        *self.peek() == Token::Word(word)
    }

    pub(super) fn take_word(&mut self, word: &str) -> bool {
        let is = self.is_word(word);
        if is {
            self.next();
        }
        is
    }

    pub(super) fn take_comparison(&mut self) -> Option<Comparison> {
        let Token::Symbol(Symbol::Compare(comparison)) = *self.peek() else { return None };
        self.next();
        Some(comparison)
    }

    /// The error that the next token is not what is expected.
    pub(super) fn unexpected(&self, expected: &'static str) -> FilterError {
        let start = self.at();
        let end = self.rest.as_slice().first().map_or(self.text.len(), |(at, _)| *at);
        let found = if *self.peek() == Token::End {
            "the end".to_owned()
        } else {
            format!("`{}`", Escaped(self.text[start..end].trim_end().as_bytes()))
        };
        self.error(start, found, expected)
    }

    pub(super) fn error(&self, at: usize, found: String, expected: &'static str) -> FilterError {
        FilterError { text: self.text.to_owned(), at, found, expected }
    }
}

/// The token at byte `at`, and its length in bytes.
fn read(text: &str, at: usize) -> Result<(Token<'_>, usize), FilterError> {
    let error = |found, expected| FilterError { text: text.to_owned(), at, found, expected };
    let rest = &text[at..];
    let first = rest.chars().next().unwrap_or('\0');
    if first.is_ascii_digit() || first == '.' {
        return number(rest).ok_or_else(|| {
            let end = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
            error(format!("`{}`", &rest[..end]), "a number")
        });
    }
    if first == '"' || first == '\'' {
        let unclosed = || error("text that is not closed".to_owned(), "a closing quote");
        return quoted(rest, first)
            .map(|(text, len)| (Token::Text(text), len))
            .ok_or_else(unclosed);
    }
    if first.is_alphabetic() || first == '_' {
        let end = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
        let name = &rest[..end];
        let after = &rest[end..];
        if let Some(pointer) = after.strip_prefix(":\"") {
            let (pointer, len) = quoted(&after[1..], '"').ok_or_else(|| {
                let found = format!("`:\"{}`", Escaped(pointer.as_bytes()));
                error(found, "a closing quote")
            })?;
            return Ok((Token::Pointer { name, pointer }, end + 1 + len));
        }
        let field = after.strip_prefix(':').filter(|_| name == "field").unwrap_or_default();
        if field.starts_with(|first: char| first.is_alphabetic() || first == '_') {
            let len = field.find(|c: char| !is_word(c)).unwrap_or(field.len());
            return Ok((Token::Field(&field[..len]), end + 1 + len));
        }
        if after.starts_with(":/") {
            let len = after[1..].find(ends_pointer).unwrap_or(after.len() - 1);
            let pointer = after[1..=len].to_owned();
            return Ok((Token::Pointer { name, pointer }, end + 1 + len));
        }
        return Ok((Token::Word(name), end));
    }
    let symbol = SYMBOLS.iter().find(|(sign, _)| rest.starts_with(sign));
    symbol.map(|&(sign, symbol)| (Token::Symbol(symbol), sign.len())).ok_or_else(|| {
        let expected = match first {
            '=' => "`==`",
            '&' => "`and`",
            '|' => "`or`",
            '!' => "`not` or `!=`",
            _ => "a name, a number, text in quotes or an operator",
        };
        error(format!("`{}`", Escaped(first.to_string().as_bytes())), expected)
    })
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '.'
}

fn ends_pointer(c: char) -> bool {
    c.is_whitespace() || "(),<>=!'\"".contains(c)
}

fn number(rest: &str) -> Option<(Token<'_>, usize)> {
    let mut end = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
    // An exponent may have a sign.
    if rest[..end].ends_with(['e', 'E']) && rest[end..].starts_with(['+', '-']) {
        let digits = &rest[end + 1..];
        end += 1 + digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    }
    let text = rest[..end].replace('_', "");
    let value = match text.parse::<i64>() {
        Ok(number) => Value::Int(number.into()),
        Err(_) => Value::Float(text.parse::<f64>().ok().filter(|number| number.is_finite())?),
    };
    Some((Token::Number(value), end))
}

/// The text between quotes at the start of `rest`, and its length with them. A backslash takes the
/// character after it as it is.
fn quoted(rest: &str, quote: char) -> Option<(String, usize)> {
    let mut text = String::new();
    let mut is_escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        if is_escaped || (c != quote && c != '\\') {
            text.push(c);
            is_escaped = false;
        } else if c == quote {
            return Some((text, at + c.len_utf8()));
        } else {
            is_escaped = true;
        }
    }
    None
}
