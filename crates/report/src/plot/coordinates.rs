//! Formats coordinates for SVG.

/// Formats a coordinate with at most two decimals.
pub(crate) fn pixel(value: f64) -> String {
    // A coordinate far outside the picture is not visible, and viewers differ in how they treat very large coordinates.
    let text = format!("{:.2}", value.clamp(-10_000.0, 10_000.0));
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// Formats a point as "x,y".
pub(crate) fn point(x: f64, y: f64) -> String {
    format!("{},{}", pixel(x), pixel(y))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_have_at_most_two_decimals() {
        assert_eq!(pixel(1.0), "1");
        assert_eq!(pixel(-0.001), "0");
        assert_eq!(pixel(12.346), "12.35");
        assert_eq!(pixel(1e300), "10000");
        assert_eq!(point(0.5, 2.0), "0.5,2");
    }
}
