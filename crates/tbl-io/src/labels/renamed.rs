//! Labels by the class names of another data set.

use std::collections::HashMap;

use super::{Labels, NONE};
use crate::error::ReadError;
use crate::list_error::{ListDefect, ListPlace};
use crate::sample::SampleSource;

impl Labels {
    /// The same classes numbered as in `names`, the class names of another data set: what two data sets
    /// call the same then has the same label in both. `names` become the class names, also those that
    /// no sample here has; samples without a label stay so.
    ///
    /// # Errors
    /// [`ReadError::List`] with [`ListDefect::UnknownClass`] for samples of a class that is not in
    /// `names`, with [`ListDefect::Twice`] for names that are the same twice, and with
    /// [`ListDefect::NoClasses`] for labels without class names.
    pub fn with_class_names<S: AsRef<dyn SampleSource>>(
        mut self,
        sources: &[S],
        names: &[String],
    ) -> Result<Self, ReadError> {
        let location =
            sources.first().map(|source| source.as_ref().location().clone()).unwrap_or_default();
        let refused = |defect: ListDefect| Err(defect.at(&location, ListPlace::default()));
        if self.class_names.is_empty() {
            return refused(ListDefect::NoClasses);
        }
        let mut places = HashMap::new();
        for (place, name) in (0_i64..).zip(names) {
            if places.insert(name.as_str(), place).is_some() {
                let name = name.clone().into_bytes();
                return refused(ListDefect::Twice { what: "class", name });
            }
        }
        let new: Vec<Option<i64>> =
            self.class_names.iter().map(|name| places.get(name.as_str()).copied()).collect();
        let mut unknown: Option<(u64, i64)> = None;
        for label in self.labels.iter_mut().flatten().filter(|label| **label != NONE) {
            let place = usize::try_from(*label).ok();
            match place.and_then(|place| new.get(place).copied().flatten()) {
                Some(number) => *label = number,
                None => {
                    let (samples, first) = unknown.unwrap_or((0, *label));
                    unknown = Some((samples + 1, first));
                }
            }
        }
        if let Some((samples, first)) = unknown {
            let name = usize::try_from(first).ok().and_then(|place| self.class_names.get(place));
            let class = name.map_or_else(|| first.to_string(), Clone::clone);
            return refused(ListDefect::UnknownClass { samples, class, classes: names.len() });
        }
        names.clone_into(&mut self.class_names);
        Ok(self)
    }
}
