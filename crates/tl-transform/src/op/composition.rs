//! Operations that hold operations: a sequence, by chance, one of several, in any order.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::color::half;
use super::{FixedSizes, Op, Operation, with_streams_of};
use crate::bounds::{self, require, require_probability};
use crate::draw::Drawing;
use crate::error::{Invalid, PlanError};
use crate::rng::Rng;
use crate::stream::Stream;

/// Does one operation after the other: a recipe within a recipe.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Compose {
    /// The operations, in order.
    pub ops: Vec<Op>,
}

impl Operation for Compose {
    fn check(&self) -> Result<(), Invalid> {
        require_some(&self.ops)
    }

    fn draw(&self, stream: Stream, drawing: &mut Drawing<'_>) -> Result<(), PlanError> {
        draw_all(&self.ops, stream, drawing)
    }

    fn output_size(&self, before: Option<(u32, u32)>, fixed: &FixedSizes) -> Option<(u32, u32)> {
        fold_size(&self.ops, before, fixed)
    }

    fn children(&self) -> &[Op] {
        &self.ops
    }
}

impl fmt::Display for Compose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({})", Joined(&self.ops, " -> "))
    }
}

/// Does all of `ops` in order with probability `p`, and otherwise none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RandomApply {
    /// The operations, in order.
    pub ops: Vec<Op>,
    /// The probability.
    #[serde(default = "half")]
    pub p: f64,
}

impl Operation for RandomApply {
    fn check(&self) -> Result<(), Invalid> {
        require_some(&self.ops)?;
        require_probability(self.p)
    }

    fn draw(&self, stream: Stream, drawing: &mut Drawing<'_>) -> Result<(), PlanError> {
        if stream.rng().chance(self.p) { draw_all(&self.ops, stream, drawing) } else { Ok(()) }
    }

    fn output_size(&self, before: Option<(u32, u32)>, fixed: &FixedSizes) -> Option<(u32, u32)> {
        let done = fold_size(&self.ops, before, fixed);
        if self.p >= 1.0 || done == before {
            done
        } else if self.p <= 0.0 {
            before
        } else {
            None
        }
    }

    fn children(&self) -> &[Op] {
        &self.ops
    }
}

impl fmt::Display for RandomApply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "(p {}: {})", self.p, Joined(&self.ops, " -> "))
    }
}

/// Does one of `ops`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RandomChoice {
    /// The operations to choose from.
    pub ops: Vec<Op>,
    /// The weight of each; all the same when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p: Option<Vec<f64>>,
}

impl RandomChoice {
    /// The place in the list of the operation to do.
    fn choose(&self, rng: &mut Rng) -> usize {
        let Some(weights) = &self.p else { return rng.index(self.ops.len()) };
        let mut left = weights.iter().sum::<f64>() * rng.unit_f64();
        let found = weights.iter().position(|weight| {
            let chosen = left < *weight;
            left -= weight;
            chosen
        });
        // Rounding can leave a little over; it belongs to the last that can be chosen at all.
        let last = weights.iter().rposition(|weight| *weight > 0.0);
        found.or(last).unwrap_or(0)
    }
}

impl Operation for RandomChoice {
    fn check(&self) -> Result<(), Invalid> {
        require_some(&self.ops)?;
        let Some(weights) = &self.p else { return Ok(()) };
        let count = as_f64(weights.len());
        let expected = "as many as there are operations";
        require(weights.len() == self.ops.len(), "length of p", count, expected)?;
        for weight in weights {
            let usable = weight.is_finite() && *weight >= 0.0;
            require(usable, "p", *weight, "finite numbers from 0")?;
        }
        let sum = weights.iter().sum::<f64>();
        require(sum.is_normal(), "sum of p", sum, "a finite number above 0")
    }

    fn draw(&self, stream: Stream, drawing: &mut Drawing<'_>) -> Result<(), PlanError> {
        draw_one(&self.ops, self.choose(&mut stream.rng()), stream, drawing)
    }

    fn output_size(&self, before: Option<(u32, u32)>, fixed: &FixedSizes) -> Option<(u32, u32)> {
        let mut sizes = self.ops.iter().map(|op| op.output_size(before, fixed));
        let first = sizes.next()?;
        sizes.all(|size| size == first).then_some(first)?
    }

    fn children(&self) -> &[Op] {
        &self.ops
    }
}

impl fmt::Display for RandomChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.p {
            None => write!(f, "({})", Joined(&self.ops, " | ")),
            Some(p) => write!(f, "(p {p:?}: {})", Joined(&self.ops, " | ")),
        }
    }
}

/// Does all of `ops`, in an order that is drawn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RandomOrder {
    /// The operations.
    pub ops: Vec<Op>,
}

impl Operation for RandomOrder {
    fn check(&self) -> Result<(), Invalid> {
        require_some(&self.ops)
    }

    fn draw(&self, stream: Stream, drawing: &mut Drawing<'_>) -> Result<(), PlanError> {
        let mut order: [u8; bounds::MAX_OPS] = std::array::from_fn(|place| place.to_le_bytes()[0]);
        let order = &mut order[..self.ops.len().min(bounds::MAX_OPS)];
        stream.rng().shuffle(order);
        order.iter().try_for_each(|place| draw_one(&self.ops, usize::from(*place), stream, drawing))
    }

    /// Known when one operation fixes the size and the others keep that size, or all keep theirs.
    fn output_size(&self, before: Option<(u32, u32)>, fixed: &FixedSizes) -> Option<(u32, u32)> {
        let size = self.ops.iter().find_map(|op| op.output_size(None, fixed)).or(before);
        self.ops.iter().all(|op| op.output_size(size, fixed) == size).then_some(size)?
    }

    fn children(&self) -> &[Op] {
        &self.ops
    }
}

impl fmt::Display for RandomOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({})", Joined(&self.ops, ", "))
    }
}

/// Draws operations one after the other, each from its own stream.
fn draw_all(ops: &[Op], stream: Stream, drawing: &mut Drawing<'_>) -> Result<(), PlanError> {
    with_streams_of(ops, stream).try_for_each(|(stream, op)| op.draw(stream, drawing))
}

/// Draws the operation at `place`. Its stream is the same whichever place others have.
fn draw_one(
    ops: &[Op],
    place: usize,
    stream: Stream,
    drawing: &mut Drawing<'_>,
) -> Result<(), PlanError> {
    match with_streams_of(ops, stream).nth(place) {
        Some((stream, op)) => op.draw(stream, drawing),
        None => Ok(()),
    }
}

fn fold_size(ops: &[Op], before: Option<(u32, u32)>, fixed: &FixedSizes) -> Option<(u32, u32)> {
    ops.iter().fold(before, |size, op| op.output_size(size, fixed))
}

/// Refuses an empty list, as torchvision does.
fn require_some(ops: &[Op]) -> Result<(), Invalid> {
    require(!ops.is_empty(), "number of ops", as_f64(ops.len()), "at least 1")
}

fn as_f64(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

/// Operations with something between them.
struct Joined<'a>(&'a [Op], &'static str);

impl fmt::Display for Joined<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, op) in self.0.iter().enumerate() {
            let between = if place == 0 { "" } else { self.1 };
            write!(f, "{between}{op}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
