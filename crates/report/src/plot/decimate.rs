//! Reduces a long series for drawing. Of all samples in one pixel column, it keeps the first, the smallest, the largest
//! and the last (Jugel et al., "M4", VLDB 2014). The line then covers the same pixels as the complete series, and no
//! spike is lost.

use std::collections::BTreeSet;

/// Keeps at most four samples per column; `position` returns the horizontal position of a sample in pixels. Samples are
/// in order of time. A short series is unchanged.
pub(crate) fn thin(samples: &[(f64, f64)], position: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
    let mut out: Vec<(f64, f64)> = Vec::new();
    let column = |sample: &(f64, f64)| position(sample.0).floor();
    for bucket in samples.chunk_by(|a, b| column(a) == column(b)) {
        if bucket.len() <= 4 {
            out.extend_from_slice(bucket);
        } else {
            let mut low = 0;
            let mut high = 0;
            for (i, sample) in bucket.iter().enumerate() {
                if sample.1 < bucket[low].1 {
                    low = i;
                }
                if sample.1 > bucket[high].1 {
                    high = i;
                }
            }
            let keep = BTreeSet::from([0, low, high, bucket.len() - 1]);
            out.extend(keep.into_iter().map(|i| bucket[i]));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thin_keeps_the_extremes_of_a_million_samples() {
        // A sawtooth with one upward and one downward spike at irregular positions.
        let mut samples: Vec<(f64, f64)> = (0..1_000_000).map(|i| (f64::from(i) * 1e-4, f64::from(i % 1000))).collect();
        samples[123_457].1 = 5000.0;
        samples[765_431].1 = -77.0;
        let thin = thin(&samples, |t| t * 4.0);
        // 100 s at 4 pixels per second are 400 columns.
        assert!(thin.len() <= 4 * 400, "{}", thin.len());
        assert!(thin.contains(&samples[123_457]) && thin.contains(&samples[765_431]));
        assert_eq!((thin.first(), thin.last()), (samples.first(), samples.last()));
        assert!(thin.windows(2).all(|w| w[0].0 < w[1].0));
        // In every column the extremes equal those of the complete series.
        for column in 0..400 {
            let range = |s: &[(f64, f64)]| {
                s.iter()
                    .filter(|p| (p.0 * 4.0).floor() == f64::from(column))
                    .fold((f64::MAX, f64::MIN), |r, p| (r.0.min(p.1), r.1.max(p.1)))
            };
            assert_eq!(range(&thin), range(&samples), "column {column}");
        }
    }

    #[test]
    fn thin_keeps_a_short_series_unchanged() {
        let samples = [(0.0, 1.0), (0.1, 3.0), (0.2, 2.0), (7.0, 1.0)];
        assert_eq!(thin(&samples, |t| t), samples);
        assert_eq!(thin(&[], |t| t), []);
    }
}
