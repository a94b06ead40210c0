//! The user's transforms by name, and those that a recipe names.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::{Bound, BoundTransforms, UserTransform, guard};
use crate::error::UserTransformError;
use crate::op::Op;
use crate::recipe::Recipe;

/// The user's transforms that recipes can name.
#[derive(Clone, Default)]
pub struct UserTransforms {
    by_name: BTreeMap<String, Arc<dyn UserTransform>>,
}

impl UserTransforms {
    /// No transforms.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a transform; it replaces one of the same name.
    pub fn insert(&mut self, name: impl Into<String>, transform: impl UserTransform + 'static) {
        self.by_name.insert(name.into(), Arc::new(transform));
    }

    /// Finds the transforms that `recipe` names, and lets them look at their parameters.
    ///
    /// # Errors
    /// [`UserTransformError`]: a name that nothing was added under, or parameters refused.
    pub fn bind(&self, recipe: &Recipe) -> Result<BoundTransforms, UserTransformError> {
        let mut bound = BoundTransforms::default();
        for (number, op) in (0..).zip(recipe.ops().iter().flat_map(Op::walk)) {
            let Op::UserTransform(op) = op else { continue };
            let name = &op.name;
            let transform = self.by_name.get(name);
            let transform =
                transform.ok_or_else(|| UserTransformError::Unknown { name: name.clone() })?;
            guard(|| transform.check(&op.parameters)).map_err(|fault| {
                UserTransformError::Parameters { name: name.clone(), source: fault }
            })?;
            bound.transforms.push(Bound {
                number,
                name: name.clone(),
                transform: Arc::clone(transform),
                parameters: op.parameters.clone(),
            });
        }
        Ok(bound)
    }
}

impl PartialEq for UserTransforms {
    /// Whether both have the very same transforms under the same names.
    fn eq(&self, other: &Self) -> bool {
        let same = |((name, a), (other, b)): ((&String, &Arc<_>), (&String, &Arc<_>))| {
            name == other && Arc::ptr_eq(a, b)
        };
        self.by_name.len() == other.by_name.len()
            && self.by_name.iter().zip(&other.by_name).all(same)
    }
}

impl fmt::Debug for UserTransforms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.by_name.keys()).finish()
    }
}
