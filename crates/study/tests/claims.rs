//! Compares the texts of the claims of the embedded studies with their expressions: a text contains the numbers of its
//! expression, and the expression or the settings contain those of the text.

use fullpipe_study::study::{Claim, Study};
use fullpipe_study::{expression::Literal, load_file};
use std::path::Path;

/// Words for numbers.
const WORDS: [(&str, f64); 22] = [
    ("half", 0.5),
    ("halve", 0.5),
    ("third", 1.0 / 3.0),
    ("two thirds", 2.0 / 3.0),
    ("quarter", 0.25),
    ("fifth", 0.2),
    ("two fifths", 0.4),
    ("tenth", 0.1),
    ("twice", 2.0),
    ("double", 2.0),
    ("one", 1.0),
    ("two", 2.0),
    ("three", 3.0),
    ("four", 4.0),
    ("five", 5.0),
    ("six", 6.0),
    ("seven", 7.0),
    ("eight", 8.0),
    ("nine", 9.0),
    ("ten", 10.0),
    ("twelve", 12.0),
    ("twenty", 20.0),
];

/// Numbers in a text that are neither a bound of its claim nor a setting: the claim, the number, and its meaning.
const BACKGROUND: &[(&str, f64, &str)] = &[
    ("buffer-sizes/bbr-deep", 95.0, "a percentile"),
    ("l4s/l4s-delay", 99.0, "a percentile"),
    ("l4s/l4s-delay-everywhere", 99.0, "a percentile"),
    ("l4s/quic", 99.0, "a percentile"),
    ("l4s/bursts", 99.0, "a percentile"),
    ("masque-delay/proxy-memory-grows", 7.0, "the interval of a metric, in seconds"),
    ("masque-delay/proxy-memory-grows", 3.0, "the interval of a metric, in seconds"),
    ("masque-mtu/overhead-of-about-3-percent", 80.0, "1280 - 1200 bytes"),
    ("masque-mtu/datagrams-add-less", 40.0, "1240 - 1200 bytes"),
    ("masque-mtu/overhead-of-the-direct-connection", 80.0, "1280 - 1200 bytes"),
    ("masque-mtu/datagrams-have-more-bytes", 40.0, "1240 - 1200 bytes"),
    ("masque-mtu/splitting-costs-as-aioquic", 3.0, "the version of HTTP"),
    ("masque-parallel/published-order", 1.7, "published"),
    ("masque-parallel/published-order", 5.3, "published"),
    ("masque-parallel/published-order", 8.1, "published"),
    ("masque-parallel/request-order-loses", 2021.0, "a year"),
    ("quic-bbr/estimates-count-headers", 1472.0, "payload of a packet"),
    ("quic-bbr/estimates-count-headers", 1448.0, "payload of a packet"),
    ("quic-bbr/estimates-count-headers", 1.017, "the ratio of these payloads"),
    ("tcp-vs-udp/tcp-near-400", 380.0, "published"),
    ("tcp-vs-udp/tcp-near-400", 384.0, "published"),
    ("tcp-vs-udp/half-duplex-bounds-udp", 935.0, "1500 of 1530 bytes, in Mibit/s"),
    ("tcp-vs-udp/delay-dip-is-scatter", 1.19, "published"),
    ("tcp-vs-udp/delay-dip-is-scatter", 1.156, "published"),
    ("http-versions/handshake", 1.3, "the version of TLS"),
    ("lte-schedulers/blind-equal-throughput", 175.9, "a step of the calculation of 1403 kbit/s"),
    ("lte-schedulers/blind-equal-throughput", 1428.0, "a step of the calculation of 1403 kbit/s"),
    ("lte-schedulers/blind-equal-throughput", 1432.0, "a step of the calculation of 1403 kbit/s"),
    ("lte-transports/small-buffer", 18.0, "the middle of the bounds that follow"),
    ("masque-delay/short-control-loop", 60.0, "a round trip, the sum of delays of the scenario"),
    ("masque-lte/reaction-decides-25", 16.0, "the default queue of the scenario"),
    ("quic-bbr/up", 1.25, "BBR's gain"),
    ("tcp-vs-udp/udp-776", 776.0, "published"),
    ("tcp-vs-udp/udp-loses-tcp-does-not", 35.0, "published"),
    ("tcp-vs-udp/udp-loses-tcp-does-not", 77.0, "published"),
    ("tcp-vs-udp/half-duplex-bounds-udp", 1530.0, "bytes of a full packet on the wire"),
    ("tcp-vs-udp/udp-delay-is-the-queue", 14.7, "the time of a packet on the wire"),
];

/// The numbers in a text, with thousands in groups of three: `10 240`.
fn numbers(text: &str) -> Vec<f64> {
    let characters: Vec<char> = text.chars().collect();
    let (mut found, mut at) = (Vec::new(), 0);
    while at < characters.len() {
        let before = at.checked_sub(1).map(|before| characters[before]);
        if !characters[at].is_ascii_digit() || before.is_some_and(|before| before.is_alphanumeric() || before == '.') {
            at += 1;
            continue;
        }
        let mut number = String::new();
        while at < characters.len() {
            let is_digit = |place: usize| characters.get(place).is_some_and(char::is_ascii_digit);
            let next = characters[at];
            let groups = matches!(next, ' ' | '\u{2009}' | '\u{a0}' | '\u{202f}')
                && (1..=3).all(|place| is_digit(at + place))
                && !is_digit(at + 4)
                && !number.contains('.');
            let fraction = next == '.' && is_digit(at + 1) && !number.contains('.');
            let exponent =
                next == 'e' && (is_digit(at + 1) || characters.get(at + 1) == Some(&'-') && is_digit(at + 2));
            if next.is_ascii_digit() || fraction || exponent || next == '-' && number.ends_with('e') {
                number.push(next);
            } else if !groups {
                break;
            }
            at += 1;
        }
        found.push(number.parse().unwrap_or_else(|_| panic!("{number} in {text}")));
    }
    found
}

/// The numbers for which words in a text stand.
fn words(text: &str) -> Vec<f64> {
    let text: String = text.to_lowercase().chars().map(|c| if c.is_alphabetic() { c } else { ' ' }).collect();
    let text = format!(" {} ", text.split_whitespace().collect::<Vec<_>>().join(" "));
    let stands = |word: &str| text.contains(&format!(" {word} ")) || text.contains(&format!(" {word}s "));
    WORDS.iter().filter(|(word, _)| stands(word)).map(|(_, number)| *number).collect()
}

/// Whether a number in a text means a number of an expression: the same number, in percent, as a change or a share in percent, as
/// one part in a number, or with another prefix of its unit (also powers of 1024).
fn means(text: f64, expression: f64) -> bool {
    let close = |number: f64| (number - expression).abs() <= 1e-9 * expression.abs().max(1e-12);
    let changes = [text, text / 100.0, 1.0 + text / 100.0, 1.0 - text / 100.0, 1.0 + text, 1.0 - text, 1.0 / text];
    let prefixes = [-9, -6, -3, 3, 6, 9].map(|power| text * 10f64.powi(power));
    let binary = [1024.0, 1_048_576.0].map(|factor| text * factor);
    changes.into_iter().chain(prefixes).chain(binary).any(close)
}

/// The bounds of an expression: its numbers outside lookups, except 0, 1 and exponents.
fn bounds(expression: &str) -> Vec<f64> {
    let (mut outside, mut depth, mut rest) = (String::new(), 0u32, expression);
    while let Some(character) = rest.chars().next() {
        let begins = |name: &str| depth == 0 && rest.starts_with(name);
        if let Some(name) = ["metric(", "runs("].into_iter().find(|name| begins(name)) {
            (depth, rest) = (1, &rest[name.len()..]);
            continue;
        }
        if depth > 0 && matches!(character, '"' | '\'') {
            let end = rest[1..].find(character).expect("the text ends");
            rest = &rest[end + 2..];
            continue;
        }
        match character {
            '(' if depth > 0 => depth += 1,
            ')' if depth > 0 => depth -= 1,
            _ if depth == 0 => outside.push(character),
            _ => {}
        }
        rest = &rest[character.len_utf8()..];
    }
    let powers: Vec<f64> = outside
        .match_indices('^')
        .flat_map(|(at, _)| {
            let before = outside[..at].trim_end().rsplit(|c: char| !c.is_ascii_digit()).next().unwrap_or("");
            [numbers(before), numbers(&outside[at + 1..]).into_iter().take(1).collect()].concat()
        })
        .collect();
    numbers(&outside).into_iter().filter(|number| ![0.0, 1.0].contains(number) && !powers.contains(number)).collect()
}

/// The numbers in a claim's lookups: their conditions, the expressions of metrics that are 1 or 0, and the settings, axes and
/// scenarios of the experiments.
fn settings(study: &Study, claim: &Claim) -> Vec<f64> {
    let mut text = String::new();
    for lookup in claim.expression.lookups() {
        for filter in &lookup.filters {
            match &filter.literal {
                Literal::Number(number) => text += &format!(" {number} "),
                Literal::Text(label) => text += &format!(" {label} "),
            }
        }
        // A claim that a condition holds in all runs has its bounds in the metric.
        let metric = study.metrics.iter().find(|metric| metric.name == lookup.metric);
        let expression = metric.map_or("", |metric| metric.record.expression.as_str());
        if expression.starts_with("holds(") {
            text += &format!(" {expression} ");
        }
        let Some(experiment) = study.experiment(&lookup.experiment) else { continue };
        text += &format!(" {} ", experiment.text);
        let levels = experiment.axes.iter().flat_map(|axis| &axis.levels);
        let set = experiment.set.iter().chain(levels.clone().flat_map(|level| &level.set));
        set.for_each(|setting| text += &format!(" {} ", setting.value.to_toml()));
        for level in levels {
            text +=
                &format!(" {} {} ", level.label, level.value.as_ref().map_or(String::new(), |value| value.to_toml()));
        }
        let scenario = study.scenarios.iter().find(|(name, _)| *name == experiment.scenario);
        text += scenario.map_or("", |(_, source)| &source.text);
    }
    for (_, parameter) in &study.parameters {
        text += &parameter.default.as_ref().map_or(String::new(), |value| format!(" {} ", value.to_toml()));
    }
    // Names have underscores before their numbers, and units follow without a space.
    let text: String =
        text.chars().map(|c| if c.is_ascii_digit() || matches!(c, '.' | '-') { c } else { ' ' }).collect();
    text.split([' ', '-']).filter_map(|number| number.trim_matches('.').parse().ok()).collect()
}

fn studies() -> Vec<Study> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies");
    let mut names: Vec<_> =
        std::fs::read_dir(folder).expect("studies").map(|entry| entry.expect("one").path()).collect();
    names.sort();
    let files = names.into_iter().map(|folder| folder.join("study.toml")).filter(|file| file.exists());
    files.map(|file| load_file(&file).unwrap_or_else(|errors| panic!("{errors}"))).collect()
}

#[test]
fn texts_of_claims_have_the_numbers_of_their_expressions() {
    let (mut wrong, mut unused) = (Vec::new(), BACKGROUND.to_vec());
    for study in studies() {
        for claim in &study.claims {
            let name = format!("{}/{}", study.name, claim.name);
            let (of_text, of_words, bounds) =
                (numbers(&claim.text), words(&claim.text), bounds(&claim.record.expression));
            let told = |bound: &f64| of_text.iter().chain(&of_words).any(|number| means(*number, *bound));
            for bound in bounds.iter().filter(|bound| !told(bound)) {
                wrong.push(format!("{name}: the text lacks the bound {bound}: {}", claim.text));
            }
            let run = settings(&study, claim);
            for number in &of_text {
                let known = |of_expression: &f64| means(*number, *of_expression);
                let background = |row: &(&str, f64, &str)| row.0 == name && row.1 == *number;
                if bounds.iter().chain(&run).any(known) {
                    continue;
                }
                unused.retain(|row| !background(row));
                if !BACKGROUND.iter().any(background) {
                    wrong.push(format!(
                        "{name}: {number} is neither a bound nor a setting of what is run: {}",
                        claim.text
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} problems\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(unused, [], "exceptions that no text needs");
}

#[test]
fn a_text_that_lacks_a_bound_is_found() {
    assert_eq!(bounds("all(0.9 <= metric('e', 'm', rtt >= 50) - 2 ^ 20 * metric('e', 'm') <= 1.1)"), [0.9, 1.1]);
    assert_eq!(numbers("HTTP/1.1 takes 10 240 packets, 2.5e-3 s or x264"), [1.1, 10_240.0, 0.0025]);
    assert_eq!(words("Twice as long, by two fifths"), [0.2, 0.4, 2.0, 2.0]);
    for (text, expression, expected) in [
        (5.0, 0.05, true),
        (5.0, 1.05, true),
        (5.0, 0.95, true),
        (5.0, 1.5, false),
        (1.0, 1e6, true),
        (64.0, 65_536.0, true),
    ] {
        assert_eq!(means(text, expression), expected, "{text} {expression}");
    }
}
