//! Sines, cosines and tangents rounded correctly.
//!
//! torchvision's matrices come from the C library, whose functions are wrong in the last bit once
//! in 700 angles, those of the crate `libm` once in 30. That bit decides a pixel where a coordinate
//! is whole except for it, which is so in the middle of images with odd sides. Sums of two doubles
//! are enough to round correctly; they take a microsecond, once for an image.

use std::f64::consts::FRAC_PI_2;

/// A sum of two doubles, the second below half a unit of the first's last place.
#[derive(Clone, Copy)]
struct Double {
    high: f64,
    low: f64,
}

/// A quarter turn in three parts.
const QUARTER: [f64; 3] = [FRAC_PI_2, 6.123_233_995_736_766e-17, -1.497_384_904_859_183_3e-33];

/// Above this the parts of a quarter turn are too few.
const LARGEST: f64 = 1e6;

/// Terms of a series: the next one is below 2^-110 for an eighth of a turn.
const TERMS: u8 = 15;

/// The sine of an angle.
pub(crate) fn sin(angle: f64) -> f64 {
    if angle.abs() > LARGEST { libm::sin(angle) } else { sin_cos(angle).0.high }
}

/// The cosine of an angle.
pub(crate) fn cos(angle: f64) -> f64 {
    if angle.abs() > LARGEST { libm::cos(angle) } else { sin_cos(angle).1.high }
}

/// The tangent of an angle.
pub(crate) fn tan(angle: f64) -> f64 {
    if angle.abs() > LARGEST {
        return libm::tan(angle);
    }
    let (sine, cosine) = sin_cos(angle);
    let quotient = sine.high / cosine.high;
    let rest = sine.add(cosine.times(Double::exact(-quotient)));
    quotient + rest.high / cosine.high
}

fn sin_cos(angle: f64) -> (Double, Double) {
    let quarters = (angle / QUARTER[0]).round();
    let parts = QUARTER.map(|part| Double::product(part, -quarters));
    let rest = parts.into_iter().fold(Double::exact(angle), Double::add);
    let sine = series(rest, rest, 1.0);
    let cosine = series(Double::exact(1.0), rest, 0.0);
    match quarters.rem_euclid(4.0) {
        1.0 => (cosine, sine.negative()),
        2.0 => (sine.negative(), cosine.negative()),
        3.0 => (cosine.negative(), sine),
        _ => (sine, cosine),
    }
}

/// `first - first x²/(n+1)(n+2) + ...`, from the sine's or the cosine's first term, of order `n`.
fn series(first: Double, x: Double, order: f64) -> Double {
    let square = x.times(x).negative();
    let mut term = first;
    let mut sum = first;
    for index in 0..TERMS {
        let next = order + 2.0 * f64::from(index);
        term = term.times(square).over((next + 1.0) * (next + 2.0));
        sum = sum.add(term);
    }
    sum
}

impl Double {
    const fn exact(high: f64) -> Self {
        Self { high, low: 0.0 }
    }

    fn product(a: f64, b: f64) -> Self {
        let high = a * b;
        Self { high, low: a.mul_add(b, -high) }
    }

    /// `high + low` for a `low` that is not larger.
    fn normal(high: f64, low: f64) -> Self {
        let sum = high + low;
        Self { high: sum, low: low - (sum - high) }
    }

    fn add(self, other: Self) -> Self {
        let sum = self.high + other.high;
        let back = sum - self.high;
        let lost = (self.high - (sum - back)) + (other.high - back);
        Self::normal(sum, lost + self.low + other.low)
    }

    fn times(self, other: Self) -> Self {
        let Self { high, low } = Self::product(self.high, other.high);
        Self::normal(high, low + self.high * other.low + self.low * other.high)
    }

    fn over(self, divisor: f64) -> Self {
        let high = self.high / divisor;
        let rest = (-high).mul_add(divisor, self.high) + self.low;
        Self::normal(high, rest / divisor)
    }

    fn negative(self) -> Self {
        Self { high: -self.high, low: -self.low }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From mpmath with 300 bits; the crate `libm` is wrong about each of them.
    #[test]
    fn the_last_bit_is_right() {
        assert_eq!(sin(6.126105674500097), -0.1564344650402311);
        assert_eq!(sin(-0.9839674973594091), -0.8327008137418542);
        assert_eq!(sin(-4.136430327226561), 0.838670567945424);
        assert_eq!(cos(3.518200380925896), -0.9299175532266912);
        assert_eq!(cos(7.033676885537148), 0.7313537016191703);
        assert_eq!(cos(11.833332328521553), 0.7431448254773936);
        assert_eq!(tan(-1.370190161058922), -4.917842836040585);
        assert_eq!(tan(-0.690184077368885), -0.8256456194290193);
        assert_eq!(tan(1.0286037551107656), 1.6599881257667852);
    }

    #[test]
    fn quarter_turns_are_what_the_nearest_doubles_give() {
        use std::f64::consts::PI;
        assert_eq!((sin(0.0), cos(0.0), tan(0.0)), (0.0, 1.0, 0.0));
        assert_eq!((sin(FRAC_PI_2), cos(FRAC_PI_2)), (1.0, 6.123233995736766e-17));
        assert_eq!((sin(PI), cos(PI)), (1.2246467991473532e-16, -1.0));
        assert_eq!((sin(-FRAC_PI_2), cos(-PI)), (-1.0, -1.0));
    }

    #[test]
    fn nothing_is_asked_of_what_is_no_angle() {
        assert!(sin(f64::NAN).is_nan() && cos(f64::INFINITY).is_nan() && tan(f64::NAN).is_nan());
        assert!((-1.0..=1.0).contains(&sin(1e300)));
    }
}
