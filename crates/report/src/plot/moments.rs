//! Mean, variance and covariance of pairs, and the ellipse of these moments: the contour of one standard deviation of
//! the normal distribution with these moments. Its semi-axes are the square roots of the eigenvalues of the covariance
//! matrix, along the eigenvectors.

use fullpipe_units::math::{cos, sin};

/// Sample moments of pairs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Moments {
    /// Number of pairs.
    pub(crate) n: usize,
    /// Means of the first and the second value.
    pub(crate) mean: (f64, f64),
    /// Sample variances (sums of squares over n - 1); zero for one pair.
    pub(crate) variance: (f64, f64),
    /// Sample covariance (also over n - 1).
    pub(crate) covariance: f64,
}

/// An ellipse by its principal axes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ellipse {
    pub(crate) centre: (f64, f64),
    /// The longer and the shorter semi-axis, possibly scaled.
    pub(crate) semi_axes: (f64, f64),
    /// Unit vector along the longer semi-axis.
    pub(crate) direction: (f64, f64),
}

impl Moments {
    /// Returns the moments of pairs; `None` if there are none, or if their squares exceed the range of f64.
    pub(crate) fn of(pairs: &[(f64, f64)]) -> Option<Self> {
        if pairs.is_empty() {
            return None;
        }
        let n = pairs.len() as f64;
        let mean = (pairs.iter().map(|p| p.0).sum::<f64>() / n, pairs.iter().map(|p| p.1).sum::<f64>() / n);
        // Uses deviations from the mean, because differences of large sums are inexact.
        let mut sums = (0.0, 0.0, 0.0);
        for (x, y) in pairs.iter().map(|p| (p.0 - mean.0, p.1 - mean.1)) {
            sums = (sums.0 + x * x, sums.1 + y * y, sums.2 + x * y);
        }
        let free = (n - 1.0).max(1.0);
        let moments =
            Self { n: pairs.len(), mean, variance: (sums.0 / free, sums.1 / free), covariance: sums.2 / free };
        // The ellipse uses products of variances and of their differences. None of them exceeds this square.
        let spread = moments.variance.0 + moments.variance.1;
        (spread * spread + mean.0 + mean.1).is_finite().then_some(moments)
    }

    /// Returns the standard deviations with the denominator n.
    pub(crate) fn population_deviations(&self) -> (f64, f64) {
        let share = (self.n as f64 - 1.0) / self.n as f64;
        ((self.variance.0 * share).sqrt(), (self.variance.1 * share).sqrt())
    }

    /// Returns the ellipse of one standard deviation. If the pairs are on a line, it is a line; if they are all equal,
    /// it is a point.
    pub(crate) fn ellipse(&self) -> Ellipse {
        let (a, d) = self.variance;
        let b = self.covariance;
        // The eigenvalues of [a b; b d]: their sum is a + d, their product is ad - b².
        let half = (a - d) / 2.0;
        let root = (half * half + b * b).sqrt();
        let larger = f64::midpoint(a, d) + root;
        // Computed from the product, because in a difference of sums a small value would be lost. It is negative only
        // because of rounding.
        let smaller = if larger > 0.0 { ((a * d - b * b) / larger).max(0.0) } else { 0.0 };
        // Both (larger - d, b) and (b, larger - a) are along the first axis. The longer of them is numerically exact.
        let along = if a >= d { (half + root, b) } else { (b, root - half) };
        let length = (along.0 * along.0 + along.1 * along.1).sqrt();
        let direction = if length > 0.0 { (along.0 / length, along.1 / length) } else { (1.0, 0.0) };
        Ellipse { centre: self.mean, semi_axes: (larger.sqrt(), smaller.sqrt()), direction }
    }
}

impl Ellipse {
    /// The number of points of the outline. The outline looks smooth: the distance of a chord from its arc is below
    /// 0.01 % of the semi-axis.
    const POINTS: u32 = 256;

    /// Returns the closed outline: its first point equals its last.
    pub(crate) fn outline(&self) -> Vec<(f64, f64)> {
        let (ux, uy) = self.direction;
        let point = |i: u32| {
            let turn = f64::from(i % Self::POINTS) / f64::from(Self::POINTS) * std::f64::consts::TAU;
            let (p, q) = (self.semi_axes.0 * cos(turn), self.semi_axes.1 * sin(turn));
            (self.centre.0 + p * ux - q * uy, self.centre.1 + p * uy + q * ux)
        };
        (0..=Self::POINTS).map(point).collect()
    }

    /// Returns the extent of the ellipse from its center to the right and upward.
    pub(crate) fn reach(&self) -> (f64, f64) {
        let ((p, q), (ux, uy)) = (self.semi_axes, self.direction);
        let reach = |along: f64, across: f64| (p * along * p * along + q * across * q * across).sqrt();
        (reach(ux, uy), reach(uy, ux))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-12 * a.abs().max(b.abs()).max(1.0)
    }

    #[test]
    fn moments_of_a_small_sample_equal_the_computed_values() {
        // x = 1 2 3 4 6, y = 3 1 5 6 5. Means 16/5 = 3.2 and 20/5 = 4.
        // Deviations in x: -2.2 -1.2 -0.2 0.8 2.8; squares 4.84 + 1.44 + 0.04 + 0.64 + 7.84 = 14.8; over 4: 3.7.
        // Deviations in y: -1 -3 1 2 1; squares 1 + 9 + 1 + 4 + 1 = 16; over 4: 4.
        // Products 2.2 + 3.6 - 0.2 + 1.6 + 2.8 = 10; over 4: 2.5.
        let moments = Moments::of(&[(1.0, 3.0), (2.0, 1.0), (3.0, 5.0), (4.0, 6.0), (6.0, 5.0)]).unwrap();
        assert!(moments.n == 5 && near(moments.mean.0, 3.2) && near(moments.mean.1, 4.0), "{moments:?}");
        assert!(near(moments.variance.0, 3.7) && near(moments.variance.1, 4.0) && near(moments.covariance, 2.5));
        // Over 5 instead of 4: sqrt(14.8 / 5) and sqrt(16 / 5).
        let (sx, sy) = moments.population_deviations();
        assert!(near(sx * sx, 2.96) && near(sy * sy, 3.2), "{sx} {sy}");
    }

    #[test]
    fn ellipse_has_the_principal_axes_of_the_covariance() {
        // [5 2; 2 2] has the eigenvalues 6 and 1 (sum 7, product 6) and the eigenvectors (2, 1) and (-1, 2).
        let moments = Moments { n: 9, mean: (10.0, 20.0), variance: (5.0, 2.0), covariance: 2.0 };
        let ellipse = moments.ellipse();
        let five = 5.0_f64.sqrt();
        assert!(near(ellipse.semi_axes.0, 6.0_f64.sqrt()) && near(ellipse.semi_axes.1, 1.0), "{ellipse:?}");
        assert!(near(ellipse.direction.0, 2.0 / five) && near(ellipse.direction.1, 1.0 / five), "{ellipse:?}");
        // Mirrored at the diagonal, and with the opposite correlation: (1, 2) and (1, -2).
        for (covariance, uy) in [(2.0, 2.0), (-2.0, -2.0)] {
            let (ux, vy) = Moments { variance: (2.0, 5.0), covariance, ..moments }.ellipse().direction;
            assert!(near((ux * uy - vy * 1.0).abs(), 0.0), "{ux} {vy}");
        }
        // The ends of the semi-axes are on the outline, at an angle of zero and of a quarter turn.
        let outline = ellipse.outline();
        let six = 6.0_f64.sqrt();
        assert!(near(outline[0].0, 10.0 + six * 2.0 / five) && near(outline[0].1, 20.0 + six / five));
        assert!(near(outline[64].0, 10.0 - 1.0 / five) && near(outline[64].1, 20.0 + 2.0 / five));
        assert_eq!(outline.first(), outline.last());
    }

    #[test]
    fn ellipse_of_degenerate_pairs_is_a_point_or_a_line() {
        // Equal pairs, or a single pair: a point.
        for pairs in [&[(3.0, 7.0); 4][..], &[(3.0, 7.0)]] {
            let ellipse = Moments::of(pairs).unwrap().ellipse();
            assert_eq!((ellipse.centre, ellipse.semi_axes, ellipse.reach()), ((3.0, 7.0), (0.0, 0.0), (0.0, 0.0)));
            assert!(ellipse.outline().iter().all(|p| *p == (3.0, 7.0)));
        }
        // Pairs on the line y = 1 - 2x: the variance of x is 1 and of y 4. One semi-axis is sqrt(5) along (1, -2), the
        // other is zero.
        let moments = Moments::of(&[(-1.0, 3.0), (0.0, 1.0), (1.0, -1.0)]).unwrap();
        let ellipse = moments.ellipse();
        assert!(near(ellipse.semi_axes.0, 5.0_f64.sqrt()) && ellipse.semi_axes.1 == 0.0, "{ellipse:?}");
        assert!(ellipse.outline().iter().all(|(x, y)| near(*y, 1.0 - 2.0 * x)));
        // One of the two values is constant.
        let ellipse = Moments::of(&[(0.0, 5.0), (2.0, 5.0)]).unwrap().ellipse();
        assert_eq!((ellipse.semi_axes, ellipse.direction), ((2.0_f64.sqrt(), 0.0), (1.0, 0.0)));
        assert_eq!(Moments::of(&[]), None);
        // Squares of variances can also overflow: 1e100 has a variance of 1e200.
        for large in [1e200, 1e100] {
            assert_eq!(Moments::of(&[(large, 1.0), (-large, 1.0)]), None);
        }
    }

    proptest! {
        /// The bounding box of the contour of one standard deviation is the standard deviation in each direction, for
        /// every correlation. On the contour, x - mean = sqrt(l1) cos t ux - sqrt(l2) sin t uy. Its maximum is sqrt(l1
        /// ux² + l2 uy²), and l1 ux² + l2 uy² is the first diagonal element of the matrix. Seconds and bit/s differ by
        /// eleven orders of magnitude.
        #[test]
        fn bounding_box_of_the_ellipse_is_the_standard_deviation(
            pairs in prop::collection::vec((-1.0..1.0, -1.0..1.0), 2..40),
            scale in prop::sample::select(vec![1.0, 1e-3, 1e8]),
        ) {
            let pairs: Vec<(f64, f64)> = pairs.into_iter().map(|(x, y): (f64, f64)| (x * 1e-3, (y + x) * scale)).collect();
            let moments = Moments::of(&pairs).unwrap();
            let ellipse = moments.ellipse();
            let (sx, sy) = (moments.variance.0.sqrt(), moments.variance.1.sqrt());
            let (rx, ry) = ellipse.reach();
            prop_assert!((rx - sx).abs() <= 1e-6 * sx && (ry - sy).abs() <= 1e-6 * sy, "{rx} {sx} {ry} {sy}");
            let outline = ellipse.outline();
            let most = |of: fn(&(f64, f64)) -> f64, centre: f64| outline.iter().map(|p| (of(p) - centre).abs()).fold(0.0, f64::max);
            let (mx, my) = (most(|p| p.0, ellipse.centre.0), most(|p| p.1, ellipse.centre.1));
            // The points of the outline are within the height of a chord of the box.
            prop_assert!(mx <= sx * 1.000001 && mx >= sx * 0.9998, "{mx} {sx}");
            prop_assert!(my <= sy * 1.000001 && my >= sy * 0.9998, "{my} {sy}");
        }
    }
}
