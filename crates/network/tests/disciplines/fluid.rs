//! A fluid model of a step in load: queue and probability as continuous quantities.

/// Returns the waiting time of departures, each millisecond, for a fluid queue with a proportional-integral controller. `overload` is the
/// number of arrivals per departure.
///
/// dq/dt = overload (1 - drop(p)) - 1, at least 0 if q = 0. An arrival at s departs at s + q(s), and the
/// controller sees its delay then; p changes every `interval_ms` by step(p, delay, previous delay).
pub fn waits(
    overload: f64,
    interval_ms: usize,
    seconds: usize,
    drop: impl Fn(f64, f64) -> f64,
    step: impl Fn(f64, f64, f64) -> f64,
) -> Vec<f64> {
    let dt = 1e-4;
    let (mut q, mut p, mut before) = (0.0f64, 0.0f64, 0.0);
    let mut queue = Vec::new();
    let mut leaving = 0;
    let mut waits = Vec::new();
    for n in 0..seconds * 10_000 {
        let now = n as f64 * dt;
        queue.push(q);
        while leaving < n && leaving as f64 * dt + queue[leaving] < now {
            leaving += 1;
        }
        let delay = queue[leaving];
        if n % (interval_ms * 10) == 0 && n > 0 {
            p = (p + step(p, delay, before)).clamp(0.0, 1.0);
            before = delay;
        }
        if n % 10 == 0 {
            waits.push(delay);
        }
        q = (q + (overload * (1.0 - drop(p, before)) - 1.0) * dt).max(0.0);
    }
    waits
}

/// Returns the mean over each tenth of a second.
pub fn tenths(waits: impl Iterator<Item = (f64, f64)>, seconds: usize) -> Vec<f64> {
    let mut sums = vec![(0.0, 0.0); seconds * 10];
    for (at, wait) in waits {
        if let Some(sum) = sums.get_mut((at * 10.0) as usize) {
            *sum = (sum.0 + wait, sum.1 + 1.0);
        }
    }
    sums.iter().map(|(sum, count)| sum / f64::max(*count, 1.0)).collect()
}

/// Returns the time and the value of the highest tenth.
pub fn highest(tenths: &[f64]) -> (f64, f64) {
    let highest =
        tenths.iter().copied().enumerate().fold((0, 0.0), |most, this| if this.1 > most.1 { this } else { most });
    (highest.0 as f64 / 10.0, highest.1)
}
