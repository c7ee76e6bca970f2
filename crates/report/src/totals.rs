//! How a metric of a run combines flows: as a mean, a sum or a ratio. Flows may differ in kind (a call and a download),
//! so a reader would misinterpret a number without this label. The label follows from the metric's expression.

/// Returns how an expression combines the flows of a run, such as "mean over flows". Returns `None` for other
/// combinations, and for expressions that do not refer to several flows.
pub fn describe_total(expression: &str) -> Option<&'static str> {
    let expression: String = expression.chars().filter(|c| !c.is_whitespace()).collect();
    // Only a pattern such as "*.main" selects several flows.
    if !expression.contains('*') {
        return None;
    }
    let (function, rest) = expression.split_once('(')?;
    let (argument, rest) = rest.split_at_checked(closing(rest)? + 1)?;
    if !argument.contains("[\"") {
        return None;
    }
    let again = ["sum(", "mean(", "median(", "min(", "max("];
    match (function, rest) {
        ("mean", "") => Some("mean over flows"),
        ("median", "") => Some("median over flows"),
        ("min", "") => Some("minimum over flows"),
        ("max", "") => Some("maximum over flows"),
        ("sum", rest) => match rest.strip_prefix("/sum(").map(|rest| (rest, closing(rest))) {
            // A ratio of sums weights flows by their numbers of packets.
            Some((rest, Some(end))) if end + 1 == rest.len() => {
                Some(if rest.contains("packets[") { "over all packets" } else { "ratio of sums over flows" })
            }
            // A rate divides the sum by a time that is the same for all flows.
            None if rest.is_empty() || !again[..3].iter().any(|function| rest.contains(function)) => {
                (!rest.contains("count(")).then_some("sum over flows")
            }
            _ => None,
        },
        _ => None,
    }
}

/// Returns the index of the parenthesis that closes one before the text. Parentheses in quotation marks are ignored.
fn closing(text: &str) -> Option<usize> {
    let (mut depth, mut quoted) = (1, false);
    for (place, c) in text.char_indices() {
        match c {
            '"' => quoted = !quoted,
            '(' if !quoted => depth += 1,
            ')' if !quoted => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(place);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_of_a_total_follows_from_its_expression() {
        for (expression, label) in [
            ("mean(present(goodput_bps[\"*.main\"]))", Some("mean over flows")),
            ("sum(tx_packets[\"*.main\"])", Some("sum over flows")),
            // Bits of all flows over the time from the first to the last reception.
            (
                "sum(rx_bytes[\"*\"]) * 8 / (max(present(last_rx_s[\"*\"])) - min(first_tx_s[\"*\"]))",
                Some("sum over flows"),
            ),
            ("sum(lost_packets[\"*\"]) / sum(tx_packets[\"*\"])", Some("over all packets")),
            ("sum(rx_bytes[\"a*\"]) / sum(rx_bytes[\"*\"])", Some("ratio of sums over flows")),
            ("max(goodput_bps[\"(*\"])", Some("maximum over flows")),
            // A single flow, other combinations, and texts that are not expressions.
            ("goodput_bps[\"tcp\"]", None),
            ("sum(goodput_bps[\"a\"])", None),
            ("mean(goodput_bps[\"*\"]) / 2", None),
            ("sum(goodput_bps[\"*\"]) / count(goodput_bps[\"*\"])", None),
            ("sum(a[\"*\"]) / sum(b[\"*\"]) * 2", None),
            ("mean(", None),
            ("*", None),
        ] {
            assert_eq!(describe_total(expression), label, "{expression}");
        }
    }
}
