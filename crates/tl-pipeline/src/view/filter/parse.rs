//! From the text of a filter to its condition.

mod token;

use super::{Comparison, Expr, Name, Operation};
use crate::error::FilterError;
use crate::view::filter::value::Value;
use token::{Symbol, Token, Tokens};

/// The deepest nesting of parentheses and signs.
const MAX_DEPTH: u32 = 64;

/// The longest text.
const MAX_BYTES: usize = 1 << 16;

/// The kind of an expression's value, as far as it is known before a sample is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Number,
    Text,
    Truth,
    Any,
}

impl Kind {
    const fn words(self) -> &'static str {
        match self {
            Self::Number => "a number",
            Self::Text => "text",
            Self::Truth => "a condition",
            Self::Any => "a value",
        }
    }
}

/// An expression, its kind and where it starts.
struct Typed {
    expr: Expr,
    kind: Kind,
    at: usize,
}

/// A parser of conditions, by recursive descent.
pub(super) struct Parser<'t> {
    tokens: Tokens<'t>,
    depth: u32,
}

impl<'t> Parser<'t> {
    pub(super) fn new(text: &'t str) -> Result<Self, FilterError> {
        if text.len() > MAX_BYTES {
            return Err(FilterError {
                text: text.chars().take(64).collect(),
                at: MAX_BYTES,
                found: format!("{} bytes", text.len()),
                expected: "at most 65536 bytes",
            });
        }
        Ok(Self { tokens: Tokens::new(text)?, depth: 0 })
    }

    /// The whole text as one condition.
    pub(super) fn condition(mut self) -> Result<Expr, FilterError> {
        let typed = self.any_of()?;
        let condition = self.truth(typed)?;
        if *self.tokens.peek() != Token::End {
            return Err(self.tokens.unexpected("`and`, `or` or the end"));
        }
        Ok(condition)
    }

    fn truth(&self, typed: Typed) -> Result<Expr, FilterError> {
        match typed.kind {
            Kind::Truth | Kind::Any => Ok(typed.expr),
            Kind::Number | Kind::Text => {
                let found = typed.kind.words().to_owned();
                Err(self.tokens.error(typed.at, found, "a condition, such as `width >= 224`"))
            }
        }
    }

    fn any_of(&mut self) -> Result<Typed, FilterError> {
        self.sequence("or", Self::all_of, Expr::Or)
    }

    fn all_of(&mut self) -> Result<Typed, FilterError> {
        self.sequence("and", Self::negation, Expr::And)
    }

    fn sequence(
        &mut self,
        word: &str,
        mut part: impl FnMut(&mut Self) -> Result<Typed, FilterError>,
        join: impl Fn(Vec<Expr>) -> Expr,
    ) -> Result<Typed, FilterError> {
        let first = part(self)?;
        if !self.tokens.is_word(word) {
            return Ok(first);
        }
        let at = first.at;
        let mut parts = vec![self.truth(first)?];
        while self.tokens.take_word(word) {
            let next = part(self)?;
            parts.push(self.truth(next)?);
        }
        Ok(Typed { expr: join(parts), kind: Kind::Truth, at })
    }

    fn negation(&mut self) -> Result<Typed, FilterError> {
        let at = self.tokens.at();
        if !self.tokens.take_word("not") {
            return self.comparison();
        }
        let negated = self.nested(Self::negation)?;
        let expr = Expr::Not(Box::new(self.truth(negated)?));
        Ok(Typed { expr, kind: Kind::Truth, at })
    }

    fn comparison(&mut self) -> Result<Typed, FilterError> {
        let left = self.sum()?;
        let at = left.at;
        if let Some(comparison) = self.tokens.take_comparison() {
            let right = self.sum()?;
            self.check_comparable(&left, comparison, &right)?;
            if self.tokens.take_comparison().is_some() {
                let found = "a second comparison".to_owned();
                return Err(self.tokens.error(at, found, "two, joined by `and`"));
            }
            let expr = Expr::Compare(Box::new(left.expr), comparison, Box::new(right.expr));
            return Ok(Typed { expr, kind: Kind::Truth, at });
        }
        let is_negated = self.tokens.is_word("not");
        if is_negated {
            self.tokens.next();
        }
        let expr = if self.tokens.take_word("in") {
            self.membership(left)?
        } else if self.tokens.take_word("like") {
            self.likeness(left)?
        } else if is_negated {
            return Err(self.tokens.unexpected("`in` or `like`"));
        } else {
            return Ok(left);
        };
        let expr = if is_negated { Expr::Not(Box::new(expr)) } else { expr };
        Ok(Typed { expr, kind: Kind::Truth, at })
    }

    fn check_comparable(
        &self,
        left: &Typed,
        comparison: Comparison,
        right: &Typed,
    ) -> Result<(), FilterError> {
        let kinds = [left.kind, right.kind];
        if !kinds.contains(&Kind::Any) && left.kind != right.kind {
            let found = right.kind.words().to_owned();
            return Err(self.tokens.error(right.at, found, left.kind.words()));
        }
        let is_equality = matches!(comparison, Comparison::Equal | Comparison::Unequal);
        if !is_equality && kinds.contains(&Kind::Truth) {
            let found = "a condition that is compared by size".to_owned();
            return Err(self.tokens.error(left.at, found, "numbers or text"));
        }
        Ok(())
    }

    fn membership(&mut self, left: Typed) -> Result<Expr, FilterError> {
        self.tokens.require(Symbol::Open, "`(` and a list")?;
        let mut list = Vec::new();
        loop {
            let value = self.sum()?;
            self.check_comparable(&left, Comparison::Equal, &value)?;
            list.push(value.expr);
            if self.tokens.take(Symbol::Comma) && !self.tokens.is(Symbol::Close) {
                continue;
            }
            self.tokens.require(Symbol::Close, "`,` or `)`")?;
            return Ok(Expr::In(Box::new(left.expr), list));
        }
    }

    fn likeness(&mut self, left: Typed) -> Result<Expr, FilterError> {
        if !matches!(left.kind, Kind::Text | Kind::Any) {
            let found = left.kind.words().to_owned();
            return Err(self.tokens.error(left.at, found, "text before `like`"));
        }
        let Token::Text(pattern) = self.tokens.peek() else {
            return Err(self.tokens.unexpected("a pattern in quotes, such as 'val/*'"));
        };
        let pattern = pattern.clone();
        self.tokens.next();
        Ok(Expr::Like(Box::new(left.expr), pattern))
    }

    fn sum(&mut self) -> Result<Typed, FilterError> {
        let signs = [(Symbol::Plus, Operation::Add), (Symbol::Minus, Operation::Subtract)];
        self.arithmetic(signs, Self::product)
    }

    fn product(&mut self) -> Result<Typed, FilterError> {
        let signs = [(Symbol::Times, Operation::Multiply), (Symbol::Slash, Operation::Divide)];
        self.arithmetic(signs, Self::factor)
    }

    fn arithmetic(
        &mut self,
        signs: [(Symbol, Operation); 2],
        mut part: impl FnMut(&mut Self) -> Result<Typed, FilterError>,
    ) -> Result<Typed, FilterError> {
        let first = part(self)?;
        let mut rest = Vec::new();
        loop {
            let mut found = signs.iter().filter(|(symbol, _)| self.tokens.is(*symbol));
            let Some(&(_, operation)) = found.next() else { break };
            self.tokens.next();
            if rest.is_empty() {
                self.check_number(&first)?;
            }
            let next = part(self)?;
            self.check_number(&next)?;
            rest.push((operation, next.expr));
        }
        if rest.is_empty() {
            return Ok(first);
        }
        let expr = Expr::Arithmetic(Box::new(first.expr), rest);
        Ok(Typed { expr, kind: Kind::Number, at: first.at })
    }

    fn check_number(&self, typed: &Typed) -> Result<(), FilterError> {
        if matches!(typed.kind, Kind::Number | Kind::Any) {
            return Ok(());
        }
        Err(self.tokens.error(typed.at, typed.kind.words().to_owned(), "a number"))
    }

    fn factor(&mut self) -> Result<Typed, FilterError> {
        let at = self.tokens.at();
        if self.tokens.take(Symbol::Minus) {
            let factor = self.nested(Self::factor)?;
            self.check_number(&factor)?;
            let zero = Box::new(Expr::Literal(Value::Int(0)));
            let expr = Expr::Arithmetic(zero, vec![(Operation::Subtract, factor.expr)]);
            return Ok(Typed { expr, kind: Kind::Number, at });
        }
        if self.tokens.take(Symbol::Open) {
            let inner = self.nested(Self::any_of)?;
            self.tokens.require(Symbol::Close, "`)`")?;
            return Ok(inner);
        }
        let (expr, kind) = match self.tokens.peek() {
            Token::Number(number) => (Expr::Literal(number.clone()), Kind::Number),
            Token::Text(text) => (Expr::Literal(Value::Text(text.clone().into())), Kind::Text),
            Token::Word(word) => match *word {
                "true" => (Expr::Literal(Value::Bool(true)), Kind::Truth),
                "false" => (Expr::Literal(Value::Bool(false)), Kind::Truth),
                "none" => (Expr::Literal(Value::None), Kind::Any),
                "and" | "or" | "not" | "in" | "like" => {
                    return Err(self.tokens.unexpected("a value"));
                }
                word => named(word),
            },
            Token::Field(name) => {
                let name = (*name).to_owned();
                (Expr::Name(Name::Field { name, pointer: None }), Kind::Any)
            }
            Token::Pointer { name, pointer } => {
                let name = (*name).to_owned();
                let pointer = Some(pointer.clone());
                (Expr::Name(Name::Field { name, pointer }), Kind::Any)
            }
            Token::Symbol(_) | Token::End => return Err(self.tokens.unexpected("a value")),
        };
        self.tokens.next();
        Ok(Typed { expr, kind, at })
    }

    /// Parses something that may contain itself.
    fn nested(
        &mut self,
        mut part: impl FnMut(&mut Self) -> Result<Typed, FilterError>,
    ) -> Result<Typed, FilterError> {
        if self.depth == MAX_DEPTH {
            return Err(self.tokens.unexpected("at most 64 levels of parentheses"));
        }
        self.depth += 1;
        let typed = part(self);
        self.depth -= 1;
        typed
    }
}

fn named(word: &str) -> (Expr, Kind) {
    let built_in = Name::BUILT_IN.into_iter().find(|(text, _)| *text == word);
    let Some((_, name)) = built_in else {
        return (Expr::Name(Name::Field { name: word.to_owned(), pointer: None }), Kind::Any);
    };
    let kind = match name {
        Name::Key | Name::Class | Name::Format => Kind::Text,
        Name::Index | Name::Label | Name::Bytes | Name::Width | Name::Height => Kind::Number,
        Name::Field { .. } => Kind::Any,
    };
    (Expr::Name(name), kind)
}
