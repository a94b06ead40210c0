//! The reaction of a command to damaged data.

use clap::ValueEnum;
use tl_decode::OnDamaged;

/// The reaction to damaged data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DamageChoice {
    /// Fail at the first damage
    Error,
    /// Keep what can be decoded and say what cannot
    Keep,
}

impl From<DamageChoice> for OnDamaged {
    fn from(choice: DamageChoice) -> Self {
        match choice {
            DamageChoice::Error => Self::Error,
            DamageChoice::Keep => Self::Keep,
        }
    }
}
