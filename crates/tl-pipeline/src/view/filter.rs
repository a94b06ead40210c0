//! Conditions on samples: a small language over what is known of a sample without decoding it.

mod parse;
mod value;

use std::fmt;
use std::str::FromStr;

use tbl_io::Field;

use super::meta::SampleMeta;
use crate::dataset::Dataset;
use crate::error::{FilterError, PipelineError, ViewError};
use crate::fields::Fields;
use parse::Parser;
use value::Value;

/// A condition on samples, such as `width >= 224 and class in ("cat", "dog")`.
///
/// `docs/pipeline/views.md` describes the language.
///
/// ```
/// use tl_pipeline::Filter;
///
/// let filter: Filter = "width >= 224 and not class in ('cat', 'dog')".parse()?;
/// assert!("width => 224".parse::<Filter>().is_err());
/// # Ok::<(), tl_pipeline::FilterError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Filter {
    text: String,
    condition: Expr,
}

impl FromStr for Filter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Self, FilterError> {
        let condition = Parser::new(text)?.condition()?;
        Ok(Self { text: text.to_owned(), condition })
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// A part of a condition.
#[derive(Clone, Debug, PartialEq)]
enum Expr {
    Name(Name),
    Literal(Value<'static>),
    Not(Box<Self>),
    And(Vec<Self>),
    Or(Vec<Self>),
    Compare(Box<Self>, Comparison, Box<Self>),
    In(Box<Self>, Vec<Self>),
    Like(Box<Self>, String),
    /// A value and what follows it, from left to right: flat, since a text may have thousands of terms.
    Arithmetic(Box<Self>, Vec<(Operation, Self)>),
}

/// A property of samples.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Name {
    Index,
    Key,
    Label,
    Class,
    Format,
    Bytes,
    Width,
    Height,
    /// The text of a file, or with a pointer a value of its JSON.
    Field {
        name: String,
        pointer: Option<String>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Equal,
    Unequal,
    Less,
    AtMost,
    Greater,
    AtLeast,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Add,
    Subtract,
    Multiply,
    Divide,
}

impl Name {
    /// The properties that are not files.
    const BUILT_IN: [(&'static str, Self); 8] = [
        ("index", Self::Index),
        ("key", Self::Key),
        ("label", Self::Label),
        ("class", Self::Class),
        ("format", Self::Format),
        ("bytes", Self::Bytes),
        ("width", Self::Width),
        ("height", Self::Height),
    ];
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Self::Field { name, pointer } = self {
            f.write_str(name)?;
            return pointer.as_ref().map_or(Ok(()), |pointer| write!(f, ":{pointer}"));
        }
        let known = Self::BUILT_IN.iter().find(|(_, name)| name == self);
        f.write_str(known.map_or("", |(text, _)| text))
    }
}

impl Filter {
    /// Checks that the data set has what the condition names.
    pub(super) fn check(&self, dataset: &Dataset) -> Result<(), PipelineError> {
        let mut names = Vec::new();
        self.condition.names(&mut names);
        let is_table = dataset.tables().next().is_some();
        if !is_table {
            check_built_in(dataset, &names)?;
        }
        let mut fields = Fields::default();
        for name in names {
            if is_table && !matches!(name, Name::Index | Name::Label | Name::Class) {
                return Err(ViewError::TableFilter { name: name.to_string() }.into());
            }
            if let Name::Field { name, .. } = name {
                fields.bytes.push(name.clone());
            }
        }
        let Err(error) = fields.check_names(dataset) else { return Ok(()) };
        let PipelineError::UnknownField { name, found } = error else { return Err(error) };
        let known = Name::BUILT_IN.map(|(name, _)| name).join(", ");
        Err(ViewError::UnknownName { name, known, found }.into())
    }

    /// True if the sample meets the condition.
    pub(super) fn matches(&self, sample: &SampleMeta<'_>) -> Result<bool, PipelineError> {
        self.condition.holds(sample)
    }
}

/// Samples whose fields are looked at for names that are built in, in addition to the first sample of
/// each source. Samples of one source have the same fields as a rule.
const LOOKED_AT: u64 = 64;

/// Fails for a built-in name that is also the name of a field. The field `label` may be what the
/// label was read from: its text is the label or the name of the class.
fn check_built_in(dataset: &Dataset, names: &[&Name]) -> Result<(), ViewError> {
    let used = |(_, name): &(&'static str, Name)| names.contains(&name);
    let used: Vec<&str> = Name::BUILT_IN.into_iter().filter(used).map(|(text, _)| text).collect();
    if used.is_empty() {
        return Ok(());
    }
    let starts = (0..dataset.shards().len()).filter_map(|shard| dataset.shard_samples(shard));
    let starts = starts.filter(|samples| !samples.is_empty()).map(|samples| samples.start);
    for index in (0..dataset.len().min(LOOKED_AT)).chain(starts) {
        let Ok(entry) = dataset.entry(index) else { continue };
        let called = |extension: &[u8]| {
            let own = entry.own_field_name(extension).unwrap_or(extension);
            let is = |name: &&&str| own.eq_ignore_ascii_case(name.as_bytes());
            used.iter().find(is).copied()
        };
        let mut found = Vec::new();
        let mut fields = Vec::new();
        let mut look = |extension: &[u8], _| {
            let name = called(extension);
            found.extend(name.filter(|name| *name != "label"));
            name == Some("label")
        };
        // The error of a damaged sample is that of the pass over the samples.
        if dataset.read_fields_where(index, &mut look, &mut fields).is_err() {
            continue;
        }
        let label = dataset.label(index);
        let class = label.and_then(|label| {
            dataset.class_names().get(usize::try_from(label).ok()?).map(String::as_str)
        });
        let is_label = |field: &Field| {
            let text = String::from_utf8_lossy(&field.bytes);
            label.is_some_and(|label| text.trim() == label.to_string())
                || class == Some(text.trim())
        };
        if fields.iter().any(|field| !is_label(field)) {
            found.push("label");
        }
        if let Some(&name) = found.first() {
            return Err(ViewError::AmbiguousName { name, sample: index });
        }
    }
    Ok(())
}

impl Expr {
    fn names<'e>(&'e self, names: &mut Vec<&'e Name>) {
        match self {
            Self::Name(name) => names.push(name),
            Self::Literal(_) => {}
            Self::Not(expr) | Self::Like(expr, _) => expr.names(names),
            Self::And(all) | Self::Or(all) => all.iter().for_each(|expr| expr.names(names)),
            Self::In(expr, list) => {
                expr.names(names);
                list.iter().for_each(|expr| expr.names(names));
            }
            Self::Compare(left, _, right) => {
                left.names(names);
                right.names(names);
            }
            Self::Arithmetic(first, rest) => {
                first.names(names);
                rest.iter().for_each(|(_, expr)| expr.names(names));
            }
        }
    }

    /// The truth of a condition; a property that is missing is not true.
    fn holds(&self, sample: &SampleMeta<'_>) -> Result<bool, PipelineError> {
        match self {
            Self::Not(expr) => Ok(!expr.holds(sample)?),
            Self::And(all) => {
                for expr in all {
                    if !expr.holds(sample)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Self::Or(any) => {
                for expr in any {
                    if expr.holds(sample)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Self::Compare(left, comparison, right) => {
                let left = left.value(sample)?;
                Ok(left.compare(*comparison, &right.value(sample)?))
            }
            Self::In(expr, list) => {
                let value = expr.value(sample)?;
                for expr in list {
                    if value.compare(Comparison::Equal, &expr.value(sample)?) {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Self::Like(expr, pattern) => {
                let value = expr.value(sample)?;
                Ok(value.text().is_some_and(|text| value::is_like(text, pattern)))
            }
            Self::Name(_) | Self::Literal(_) | Self::Arithmetic(..) => {
                let value = self.value(sample)?;
                let Some(truth) = value.truth() else {
                    // Literals and sums are checked when the text is parsed.
                    let name =
                        if let Self::Name(name) = self { name.to_string() } else { String::new() };
                    let defect = format!("is {value}, expected true or false");
                    return Err(ViewError::Value { sample: sample.index(), name, defect }.into());
                };
                Ok(truth)
            }
        }
    }

    fn value<'s>(&'s self, sample: &'s SampleMeta<'_>) -> Result<Value<'s>, PipelineError> {
        Ok(match self {
            Self::Name(name) => name.value(sample)?,
            Self::Literal(value) => value.clone(),
            Self::Arithmetic(first, rest) => {
                let mut value = first.value(sample)?;
                for (operation, expr) in rest {
                    value = value.combine(*operation, &expr.value(sample)?);
                }
                value
            }
            Self::Not(_)
            | Self::And(_)
            | Self::Or(_)
            | Self::Compare(..)
            | Self::In(..)
            | Self::Like(..) => Value::Bool(self.holds(sample)?),
        })
    }
}

impl Name {
    fn value<'s>(&self, sample: &'s SampleMeta<'_>) -> Result<Value<'s>, PipelineError> {
        let text = |text: Option<_>| text.map_or(Value::None, Value::Text);
        Ok(match self {
            Self::Index => Value::Int(sample.index().into()),
            Self::Key => text(sample.text_key()),
            Self::Label => sample.label()?.map_or(Value::None, |label| Value::Int(label.into())),
            Self::Class => text(sample.class()?.map(Into::into)),
            Self::Format => text(Some(sample.format().to_string().to_ascii_lowercase().into())),
            Self::Bytes => Value::Int(sample.bytes().into()),
            Self::Width => Value::Int(sample.size()?.0.into()),
            Self::Height => Value::Int(sample.size()?.1.into()),
            Self::Field { name, pointer: None } => {
                sample.field(name)?.map_or(Value::None, |bytes| Value::of_field(&bytes))
            }
            Self::Field { name, pointer: Some(pointer) } => {
                let value = |document: &serde_json::Value| {
                    document.pointer(pointer).map_or(Value::None, Value::of_json)
                };
                sample.with_json(name, value)?.unwrap_or(Value::None)
            }
        })
    }
}

#[cfg(test)]
mod tests;
