//! Differences between two alternatives over paired replications: one interval for each of several simultaneous
//! comparisons.
//!
//! The interval of the mean difference is Student's with the confidence 1 - 0.05 / k for k comparisons (Bonferroni). All
//! k intervals contain the true differences with a probability of at least 95 %. The bootstrap does not serve here: with
//! ten replications and hundreds of comparisons, its percentiles lie beyond the resolution of the resamples.

use crate::statistics::{mean, standard_deviation, student_t_quantile};
use crate::{MIN_REPLICATIONS, MIN_REPLICATIONS_SKEWED, is_skewed, too_few};
use std::cmp::Ordering;

/// The result of a paired comparison.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PairedDifference {
    /// The mean difference; `None` without replications.
    pub mean: Option<f64>,
    /// The ends of the simultaneous interval; `None` for fewer than two replications.
    pub interval: Option<(f64, f64)>,
    /// On which side of zero the interval lies, `Equal` if it contains zero; `None` if there are too few replications.
    pub sign: Option<Ordering>,
    /// Why there is no sign.
    pub note: Option<String>,
}

/// Compares two alternatives by their differences, one for each complete replication. `comparisons` is the number of
/// simultaneous comparisons.
pub fn judge_difference(differences: &[f64], comparisons: u64) -> PairedDifference {
    let n = differences.len();
    let mean = mean(differences);
    let half = standard_deviation(differences).map(|deviation| {
        student_t_quantile(n - 1, 1.0 - 0.05 / comparisons.max(1) as f64) * deviation / (n as f64).sqrt()
    });
    let interval = mean.zip(half).map(|(mean, half)| (mean - half, mean + half));
    let for_skewness = if is_skewed(differences) { MIN_REPLICATIONS_SKEWED } else { MIN_REPLICATIONS };
    let note = too_few(n, for_skewness, false, 1);
    let sign = interval.filter(|_| note.is_none()).map(|(low, high)| {
        if low > 0.0 {
            Ordering::Greater
        } else if high < 0.0 {
            Ordering::Less
        } else {
            Ordering::Equal
        }
    });
    PairedDifference { mean, interval, sign, note }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values 1 to 10 have the mean 5.5 and the standard deviation sqrt(82.5 / 9) = 3.02765. With t(0.975, 9) =
    /// 2.26216 (tables of Student's distribution), half the interval is 2.26216 * 3.02765 / sqrt(10) = 2.16585. For ten
    /// comparisons, t(0.9975, 9) = 3.68966, and half the interval is 3.53256.
    #[test]
    fn interval_of_ten_differences_is_students_and_widens_with_the_number_of_comparisons() {
        let values: Vec<f64> = (1..=10).map(f64::from).collect();
        for (comparisons, half) in [(1, 2.16585), (10, 3.53256)] {
            let judged = judge_difference(&values, comparisons);
            let (low, high) = judged.interval.expect("ten values");
            assert!((low - (5.5 - half)).abs() < 1e-4 && (high - (5.5 + half)).abs() < 1e-4, "{low} {high}");
            assert_eq!((judged.mean, judged.sign), (Some(5.5), Some(Ordering::Greater)));
        }
        // 5.5 - 3 = 2.5 lies above 2.16585 and below 3.53256: the number of comparisons decides.
        let shifted: Vec<f64> = values.iter().map(|value| value - 3.0).collect();
        assert_eq!(judge_difference(&shifted, 1).sign, Some(Ordering::Greater));
        assert_eq!(judge_difference(&shifted, 10).sign, Some(Ordering::Equal));
        let negative: Vec<f64> = shifted.iter().map(|value| -value).collect();
        assert_eq!(judge_difference(&negative, 1).sign, Some(Ordering::Less));
    }

    #[test]
    fn equal_alternatives_are_not_distinguishable() {
        let judged = judge_difference(&[0.0; 10], 500);
        assert_eq!((judged.interval, judged.sign), (Some((0.0, 0.0)), Some(Ordering::Equal)));
    }

    #[test]
    fn fewer_than_ten_replications_or_fewer_than_thirty_skewed_ones_have_no_sign() {
        let judged = judge_difference(&[1.0; 9], 1);
        assert_eq!((judged.sign, judged.note.as_deref()), (None, Some("9 complete replications, 10 are needed")));
        // One outlier among ten: the skewness is sqrt(10) = 3.16, as for every such sample.
        let mut skewed = [1.0; 10];
        skewed[3] = 2.0;
        let judged = judge_difference(&skewed, 1);
        let note = "10 complete replications, 30 are needed, because they are skewed";
        assert_eq!((judged.sign, judged.note.as_deref()), (None, Some(note)));
        assert_eq!(
            judge_difference(&[], 1),
            PairedDifference {
                note: Some("0 complete replications, 10 are needed".to_owned()),
                ..PairedDifference::default()
            }
        );
    }

    /// With k = 60 comparisons of samples without a difference, at least one wrong finding occurs in at most 5 % of
    /// studies. The bound for 400 studies is 5 % plus two standard deviations of the share, 2 sqrt(0.05 * 0.95 / 400) =
    /// 2.2 %.
    #[test]
    fn wrong_findings_are_rare_over_all_comparisons() {
        let mut stream = fullpipe_units::RandomStream::new(7, "study", "differences");
        let mut wrong = 0;
        for _ in 0..400 {
            let found = (0..60).any(|_| {
                // The sum of twelve uniform numbers minus 6 is nearly normal.
                let mut normal = || (0..12).map(|_| stream.uniform()).sum::<f64>() - 6.0;
                let values: Vec<f64> = (0..10).map(|_| normal()).collect();
                matches!(judge_difference(&values, 60).sign, Some(Ordering::Greater | Ordering::Less))
            });
            wrong += u32::from(found);
        }
        assert!(wrong <= 28, "{wrong} of 400 studies have a wrong finding");
    }
}
