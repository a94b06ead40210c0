//! Shares of a whole at random.

use super::Rng;

impl Rng {
    /// Shares that are positive and have the sum 1, from the symmetric Dirichlet distribution with
    /// parameter `alpha`, above 0; two of them have the beta distribution.
    ///
    /// They are gamma deviates over their sum.
    pub(crate) fn dirichlet(&mut self, alpha: f64, shares: &mut [f64]) {
        // Logarithms, because deviates of a small `alpha` are less than any `f64`.
        shares.iter_mut().for_each(|share| *share = self.log_gamma_deviate(alpha));
        let most = shares.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        shares.iter_mut().for_each(|share| *share = libm::exp(*share - most));
        let sum: f64 = shares.iter().sum();
        shares.iter_mut().for_each(|share| *share /= sum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Kolmogorov-Smirnov distance of `values` from a distribution, times sqrt(n).
    fn ks(mut values: Vec<f64>, distribution: impl Fn(f64) -> f64) -> f64 {
        values.sort_by(f64::total_cmp);
        let n = values.len() as f64;
        let distance = values.iter().enumerate().map(|(rank, value)| {
            let expected = distribution(*value);
            (expected - rank as f64 / n).abs().max((expected - (rank + 1) as f64 / n).abs())
        });
        distance.fold(0.0, f64::max) * n.sqrt()
    }

    fn shares<const N: usize>(alpha: f64) -> Vec<[f64; N]> {
        let mut rng = Rng::new(42, 0, 0, 0);
        let draw = || {
            let mut shares = [0.0; N];
            rng.dirichlet(alpha, &mut shares);
            shares
        };
        std::iter::repeat_with(draw).take(20_000).collect()
    }

    #[test]
    fn shares_have_the_sum_one() {
        for alpha in [1e-6, 0.01, 0.5, 1.0, 7.0, 1e6] {
            for shares in shares::<5>(alpha) {
                assert!(shares.iter().all(|share| (0.0..=1.0).contains(share)), "{shares:?}");
                assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-12, "{shares:?}");
            }
        }
    }

    /// The distribution functions are those of Beta(1/2, 1/2) (the arcsine law), Beta(1, 1),
    /// Beta(2, 2), and of the share of one in three and in five: Beta(1, 2) and Beta(2, 8).
    #[test]
    fn shares_follow_the_beta_distribution() {
        // 99.9 % point of the Kolmogorov distribution.
        let check = |distance: f64| assert!(distance < 1.95, "{distance}");
        let first = |alpha| shares::<2>(alpha).into_iter().map(|[first, _]| first).collect();
        check(ks(first(0.5), |x| 2.0 / std::f64::consts::PI * x.sqrt().asin()));
        check(ks(first(1.0), |x| x));
        check(ks(first(2.0), |x| x * x * (3.0 - 2.0 * x)));
        let of_three = shares::<3>(1.0).into_iter().map(|shares| shares[2]).collect();
        check(ks(of_three, |x| 1.0 - (1.0 - x).powi(2)));
        let of_five = shares::<5>(2.0).into_iter().map(|shares| shares[1]).collect();
        check(ks(of_five, |x| 1.0 - (1.0 - x).powi(9) - 9.0 * x * (1.0 - x).powi(8)));
    }
}
