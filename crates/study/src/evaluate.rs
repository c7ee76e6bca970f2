//! Evaluates the expressions of `expression.rs`. Every evaluation has a result and no side effects; its input is an
//! [`EvaluationContext`].

use crate::expression::{
    Arithmetic, Comparison, Expression, ExpressionError, ExpressionNode, Function, Logic, Lookup, Operation,
};
use crate::statistics;
use crate::verdict::Formula;
use fullpipe_units::math;

/// The data to which an expression can refer. An implementation overrides the methods for the data that it has. By
/// default, a method returns `None` or an empty list: the value is missing.
pub trait EvaluationContext {
    /// Returns a column for the flows or links that match a pattern, in the order of the file. The file is `links.csv`
    /// for names with the prefix `link_`, `figures.csv` for `figure_`, and otherwise `flows.csv`.
    fn column(&self, _column: &str, _pattern: &str) -> Vec<Option<f64>> {
        Vec::new()
    }
    /// Returns the samples of a series from one time to another, both in seconds, in order of time.
    fn series(&self, _subject: &str, _metric: &str, _from_s: f64, _to_s: f64) -> Vec<Option<f64>> {
        Vec::new()
    }
    /// Returns the samples of a series within the measured interval, in order of time.
    fn measured_series(&self, _subject: &str, _metric: &str) -> Vec<Option<f64>> {
        Vec::new()
    }
    /// Returns a time (`met_s`, `at_s`) or a recorded metric of an event.
    fn event(&self, _event: &str, _value: &str) -> Option<f64> {
        None
    }
    /// Returns a column of `completions.csv` for an exchange or transfer of a flow. `number` counts from 1.
    fn completion(&self, _flow: &str, _number: u64, _column: &str) -> Option<f64> {
        None
    }
    /// Returns a value of the lateness record of a run in real time.
    fn lateness(&self, _name: &str) -> Option<f64> {
        None
    }
    /// Returns the value of an axis or a parameter.
    fn variable(&self, _name: &str) -> Option<f64> {
        None
    }
    /// Returns the values of a metric at the points that a lookup selects.
    fn lookup(&self, _lookup: &Lookup) -> Vec<Option<f64>> {
        Vec::new()
    }
}

/// Evaluates a metric; `None` if its value is missing.
///
/// # Errors
/// If the result is more than one value, or if lists of different lengths are combined.
pub fn evaluate_number(
    expression: &Expression,
    environment: &dyn EvaluationContext,
) -> Result<Option<f64>, ExpressionError> {
    match evaluate(&expression.root, environment)? {
        Value::Numbers(numbers) => single(&numbers, expression.root.column, "`sum`, `mean`, `min` or `max`"),
        Value::Truths(_) => Ok(None),
    }
}

/// Evaluates a claim; `None` if its truth value is unknown because a value is missing.
///
/// # Errors
/// If the result is more than one value, or if lists of different lengths are combined.
pub fn evaluate_truth(
    expression: &Expression,
    environment: &dyn EvaluationContext,
) -> Result<Option<bool>, ExpressionError> {
    match evaluate(&expression.root, environment)? {
        Value::Truths(truths) => single(&truths, expression.root.column, "`all` or `any`"),
        Value::Numbers(_) => Ok(None),
    }
}

/// The parts of a claim: how they are combined, and the truth value and the position of each part.
#[derive(Debug)]
pub(crate) struct ClaimParts {
    pub(crate) formula: Formula,
    pub(crate) truths: Vec<Option<bool>>,
    /// For each part: the column of its comparison, its index in the list of results, and the length of the list.
    pub(crate) places: Vec<(usize, usize, usize)>,
}

/// Splits a claim into parts, where each result of each comparison is a part. The number and the order of the parts
/// depend on the points, not on the values.
///
/// # Errors
/// The errors of [`evaluate_truth`].
pub(crate) fn parts(
    expression: &Expression,
    environment: &dyn EvaluationContext,
) -> Result<ClaimParts, ExpressionError> {
    let mut parts = ClaimParts { formula: Formula::All(Vec::new()), truths: Vec::new(), places: Vec::new() };
    let mut formulas = parts.of(&expression.root, environment)?;
    if formulas.len() > 1 {
        let truths = vec![None::<bool>; formulas.len()];
        single(&truths, expression.root.column, "`all` or `any`")?;
    }
    parts.formula = match formulas.pop() {
        Some(formula) => formula,
        None => parts.add(None, (expression.root.column, 0, 1)),
    };
    Ok(parts)
}

/// Returns a conjunction or disjunction, into which nested ones of the same kind are merged.
fn combined(all: bool, formulas: Vec<Formula>) -> Formula {
    let mut flat = Vec::new();
    for formula in formulas {
        match formula {
            Formula::All(inner) if all => flat.extend(inner),
            Formula::Any(inner) if !all => flat.extend(inner),
            other => flat.push(other),
        }
    }
    match (flat.len(), all) {
        (1, _) => flat.remove(0),
        (_, true) => Formula::All(flat),
        (_, false) => Formula::Any(flat),
    }
}

impl ClaimParts {
    fn add(&mut self, truth: Option<bool>, place: (usize, usize, usize)) -> Formula {
        self.truths.push(truth);
        self.places.push(place);
        Formula::Part(self.truths.len() - 1)
    }

    fn of(
        &mut self,
        node: &ExpressionNode,
        environment: &dyn EvaluationContext,
    ) -> Result<Vec<Formula>, ExpressionError> {
        Ok(match &node.operation {
            Operation::Not(inner) => {
                let inner = self.of(inner, environment)?;
                inner.into_iter().map(|formula| Formula::Not(Box::new(formula))).collect()
            }
            Operation::Logic(logic, left, right) => {
                let (left, right) = (self.of(left, environment)?, self.of(right, environment)?);
                let (left, right): (Vec<_>, Vec<_>) = (left.iter().collect(), right.iter().collect());
                let with =
                    |left: &Formula, right: &Formula| combined(*logic == Logic::And, vec![left.clone(), right.clone()]);
                pairwise(&left, &right, node.column, with)?
            }
            Operation::Call(function @ (Function::All | Function::Any), arguments) => {
                let mut formulas = Vec::new();
                for argument in arguments {
                    formulas.extend(self.of(argument, environment)?);
                }
                if formulas.is_empty() {
                    formulas.push(self.add(None, (node.column, 0, 1)));
                }
                vec![combined(*function == Function::All, formulas)]
            }
            _ => {
                let truths = truths(node, environment)?;
                let of = truths.len();
                let places = truths.into_iter().enumerate();
                places.map(|(index, truth)| self.add(truth, (node.column, index, of))).collect()
            }
        })
    }
}

fn single<T: Copy>(values: &[Option<T>], column: usize, reduce: &str) -> Result<Option<T>, ExpressionError> {
    match values {
        [] => Ok(None),
        [value] => Ok(*value),
        _ => Err(ExpressionError::new(
            column,
            format!("the expression has {} values, expected one: reduce them with {reduce}", values.len()),
        )),
    }
}

enum Value {
    Numbers(Vec<Option<f64>>),
    Truths(Vec<Option<bool>>),
}

fn numbers(node: &ExpressionNode, environment: &dyn EvaluationContext) -> Result<Vec<Option<f64>>, ExpressionError> {
    match evaluate(node, environment)? {
        Value::Numbers(numbers) => Ok(numbers),
        // The parser has already checked the kinds.
        Value::Truths(truths) => Ok(vec![None; truths.len()]),
    }
}

fn truths(node: &ExpressionNode, environment: &dyn EvaluationContext) -> Result<Vec<Option<bool>>, ExpressionError> {
    match evaluate(node, environment)? {
        Value::Truths(truths) => Ok(truths),
        Value::Numbers(numbers) => Ok(vec![None; numbers.len()]),
    }
}

/// Returns the number if it is finite; otherwise the value is missing.
fn finite(number: f64) -> Option<f64> {
    number.is_finite().then_some(number)
}

/// Combines two lists element by element. A list of one element can be combined with a list of any length.
fn pairwise<T: Copy, U>(
    left: &[T],
    right: &[T],
    column: usize,
    with: impl Fn(T, T) -> U,
) -> Result<Vec<U>, ExpressionError> {
    match (left, right) {
        ([], _) | (_, []) => Ok(Vec::new()),
        ([left], _) => Ok(right.iter().map(|right| with(*left, *right)).collect()),
        (_, [right]) => Ok(left.iter().map(|left| with(*left, *right)).collect()),
        _ if left.len() == right.len() => Ok(left.iter().zip(right).map(|(left, right)| with(*left, *right)).collect()),
        _ => Err(ExpressionError::new(
            column,
            format!(
                "cannot combine a list of {} values with a list of {}: expected equal lengths",
                left.len(),
                right.len()
            ),
        )),
    }
}

fn evaluate(node: &ExpressionNode, environment: &dyn EvaluationContext) -> Result<Value, ExpressionError> {
    Ok(match &node.operation {
        Operation::Number(number) => Value::Numbers(vec![Some(*number)]),
        Operation::Boolean(truth) => Value::Truths(vec![Some(*truth)]),
        Operation::Name(name) => Value::Numbers(vec![environment.variable(name).and_then(finite)]),
        Operation::Column { column, pattern } => Value::Numbers(environment.column(column, pattern)),
        Operation::Series { subject, metric, from_s, to_s } => {
            Value::Numbers(environment.series(subject, metric, *from_s, *to_s))
        }
        Operation::Measured { subject, metric } => Value::Numbers(environment.measured_series(subject, metric)),
        Operation::Event { event, value } => Value::Numbers(vec![environment.event(event, value).and_then(finite)]),
        Operation::Completion { flow, number, column } => {
            Value::Numbers(vec![environment.completion(flow, *number, column).and_then(finite)])
        }
        Operation::Lateness(name) => Value::Numbers(vec![environment.lateness(name).and_then(finite)]),
        Operation::Lookup(lookup) => Value::Numbers(environment.lookup(lookup)),
        Operation::Negate(inner) => Value::Numbers(each(numbers(inner, environment)?, |number| -number)),
        Operation::Not(inner) => {
            Value::Truths(truths(inner, environment)?.into_iter().map(|truth| truth.map(|truth| !truth)).collect())
        }
        Operation::Arithmetic(with, left, right) => {
            let (left, right) = (numbers(left, environment)?, numbers(right, environment)?);
            Value::Numbers(pairwise(&left, &right, node.column, |left, right| {
                finite(arithmetic(*with, left?, right?))
            })?)
        }
        Operation::Logic(logic, left, right) => {
            let (left, right) = (truths(left, environment)?, truths(right, environment)?);
            Value::Truths(pairwise(&left, &right, node.column, |left, right| match logic {
                Logic::And => and(left, right),
                Logic::Or => or(left, right),
            })?)
        }
        Operation::Comparison(first, rest) => {
            let mut left = numbers(first, environment)?;
            let mut result = vec![Some(true)];
            for (comparison, next) in rest {
                let right = numbers(next, environment)?;
                let link =
                    pairwise(&left, &right, node.column, |left, right| Some(compare(*comparison, left?, right?)))?;
                result = pairwise(&result, &link, node.column, and)?;
                left = right;
            }
            Value::Truths(result)
        }
        Operation::Call(function, arguments) => call(*function, arguments, node.column, environment)?,
    })
}

fn arithmetic(with: Arithmetic, left: f64, right: f64) -> f64 {
    match with {
        Arithmetic::Add => left + right,
        Arithmetic::Subtract => left - right,
        Arithmetic::Multiply => left * right,
        Arithmetic::Divide => left / right,
        Arithmetic::Power => math::pow(left, right),
    }
}

/// Returns whether the comparison of `left` and `right` is true.
pub(crate) fn compare(comparison: Comparison, left: f64, right: f64) -> bool {
    match comparison {
        Comparison::Less => left < right,
        Comparison::LessOrEqual => left <= right,
        Comparison::Greater => left > right,
        Comparison::GreaterOrEqual => left >= right,
        Comparison::Equal => left == right,
        Comparison::NotEqual => left != right,
    }
}

fn and(left: Option<bool>, right: Option<bool>) -> Option<bool> {
    match (left, right) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

fn or(left: Option<bool>, right: Option<bool>) -> Option<bool> {
    match (left, right) {
        (Some(true), _) | (_, Some(true)) => Some(true),
        (Some(false), Some(false)) => Some(false),
        _ => None,
    }
}

fn each(values: Vec<Option<f64>>, with: impl Fn(f64) -> f64) -> Vec<Option<f64>> {
    values.into_iter().map(|value| value.map(&with).and_then(finite)).collect()
}

fn call(
    function: Function,
    arguments: &[ExpressionNode],
    column: usize,
    environment: &dyn EvaluationContext,
) -> Result<Value, ExpressionError> {
    if matches!(function, Function::All | Function::Any) {
        let mut all = Vec::new();
        for argument in arguments {
            all.extend(truths(argument, environment)?);
        }
        let result = match function {
            _ if all.is_empty() => None,
            Function::All => all.into_iter().fold(Some(true), and),
            _ => all.into_iter().fold(Some(false), or),
        };
        return Ok(Value::Truths(vec![result]));
    }
    if function == Function::Holds {
        let truths = arguments.first().map_or(Ok(Vec::new()), |argument| truths(argument, environment))?;
        return Ok(Value::Numbers(
            truths.into_iter().map(|truth| truth.map(|truth| f64::from(u8::from(truth)))).collect(),
        ));
    }
    let mut lists = Vec::new();
    for argument in arguments {
        lists.push(numbers(argument, environment)?);
    }
    let first = lists.first().cloned().unwrap_or_default();
    let second = lists.get(1).cloned().unwrap_or_default();
    let all = || lists.concat();
    let one = |value: Option<f64>| vec![value.and_then(finite)];
    Ok(Value::Numbers(match function {
        Function::Abs => each(first, f64::abs),
        Function::Sqrt => each(first, f64::sqrt),
        Function::Log10 => each(first, math::log10),
        Function::Ln => each(first, math::ln),
        Function::Exp => each(first, math::exp),
        Function::Sum => one(complete(&all()).map(|values| values.iter().sum())),
        Function::Mean => one(complete(&all()).and_then(|values| statistics::mean(&values))),
        Function::Min => one(complete(&all()).and_then(|values| values.into_iter().min_by(f64::total_cmp))),
        Function::Max => one(complete(&all()).and_then(|values| values.into_iter().max_by(f64::total_cmp))),
        Function::Median => one(complete(&all()).and_then(|values| statistics::quantile(&values, 0.5))),
        Function::Quantile => {
            let probability = single(&second, column, "one probability")?;
            one(complete(&first).zip(probability).and_then(|(values, p)| statistics::quantile(&values, p)))
        }
        Function::Count => one(Some(first.len() as f64)),
        Function::Jain => one(complete(&first).and_then(|values| statistics::jain_index(&values))),
        Function::Present => first.into_iter().filter(Option::is_some).collect(),
        Function::Deviation => one(complete(&first).and_then(|values| statistics::standard_deviation(&values))),
        Function::Differences => {
            let pairs = first.iter().zip(first.iter().skip(1));
            pairs.map(|(before, after)| finite((*after)? - (*before)?)).collect()
        }
        Function::Part => {
            let place = |index: usize| single(lists.get(index).map_or(&[][..], Vec::as_slice), column, "one number");
            let (number, of) = (place(1)?, place(2)?);
            let whole = |value: &f64| value.fract() == 0.0;
            match number.filter(whole).zip(of.filter(whole)) {
                Some((number, of)) if 1.0 <= number && number <= of => {
                    let end = |part: f64| (first.len() as f64 * part / of).round() as usize;
                    first[end(number - 1.0)..end(number)].to_vec()
                }
                _ => {
                    let message =
                        "`part` takes a list, the number of the part (from 1) and the number of parts".to_owned();
                    return Err(ExpressionError::new(column, message));
                }
            }
        }
        // Handled above.
        Function::All | Function::Any | Function::Holds => Vec::new(),
    }))
}

/// Returns the values if there are any and none of them is missing.
fn complete(values: &[Option<f64>]) -> Option<Vec<f64>> {
    if values.is_empty() { None } else { values.iter().copied().collect() }
}

/// Returns whether a flow's name matches a pattern: `*` matches any text, and `?` one character. The name of a reverse
/// direction, which ends with `.reverse`, matches only a pattern that also ends with `.reverse`.
pub fn flow_matches(pattern: &str, flow: &str) -> bool {
    flow.ends_with(".reverse") == pattern.ends_with(".reverse") && fullpipe_scenario::matches(pattern, flow)
}

/// Returns whether a row of `flows.csv` matches a pattern. `PATTERN.main` selects the main directions of the flows that
/// match PATTERN, and `PATTERN.opposite` their other directions. All other patterns are those of [`flow_matches`].
pub(crate) fn direction_matches(pattern: &str, name: &str, is_main: bool) -> bool {
    let is_of = |flows: &str| fullpipe_scenario::matches(flows, name.strip_suffix(".reverse").unwrap_or(name));
    match pattern.rsplit_once('.') {
        // A flow's name can end with `.main` or `.opposite`.
        _ if name == pattern => true,
        Some((flows, "main")) => is_main && is_of(flows),
        Some((flows, "opposite")) => !is_main && is_of(flows),
        _ => flow_matches(pattern, name),
    }
}

/// Returns the flow in a pattern. If the pattern contains an `@`, it selects one end of the flow, and the host after
/// the `@` is also returned. Names cannot contain `@`.
pub(crate) fn end_of(pattern: &str) -> (&str, Option<&str>) {
    pattern.split_once('@').map_or((pattern, None), |(flow, host)| (flow, Some(host)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expression::{ExpressionPurpose, parse};
    use proptest::prelude::*;

    /// Three flows a, b, b.reverse with goodput 3, missing, 5 and 10, 20, 30 received packets; `x` is 7.
    struct World;

    impl EvaluationContext for World {
        fn column(&self, column: &str, pattern: &str) -> Vec<Option<f64>> {
            let rows = [("a", Some(3.0), 10.0), ("b", None, 20.0), ("b.reverse", Some(5.0), 30.0)];
            rows.iter()
                .filter(|(flow, _, _)| flow_matches(pattern, flow))
                .map(|(_, goodput, packets)| match column {
                    "goodput_bps" => *goodput,
                    "rx_packets" => Some(*packets),
                    _ => Some(0.0),
                })
                .collect()
        }
        fn series(&self, _: &str, _: &str, from_s: f64, to_s: f64) -> Vec<Option<f64>> {
            (0..10).map(f64::from).filter(|t| (from_s..=to_s).contains(t)).map(|t| Some(t * t)).collect()
        }
        fn event(&self, event: &str, value: &str) -> Option<f64> {
            (event == "fall" && value == "at_s").then_some(2.5)
        }
        fn completion(&self, flow: &str, number: u64, column: &str) -> Option<f64> {
            // 1.5 s and 3 s; the third was not completed.
            (flow == "a" && column == "completed_s" && number < 3).then_some(1.5 * number as f64)
        }
        fn lateness(&self, name: &str) -> Option<f64> {
            (name == "events.p90_s").then_some(0.25)
        }
        fn variable(&self, name: &str) -> Option<f64> {
            (name == "x").then_some(7.0)
        }
        fn lookup(&self, lookup: &Lookup) -> Vec<Option<f64>> {
            match lookup.metric.as_str() {
                "runs1" => vec![Some(1.0), Some(2.0), Some(3.0)],
                "runs2" => vec![Some(0.5), Some(1.6), Some(2.4)],
                "two" => vec![Some(1.0), Some(2.0)],
                _ => vec![None],
            }
        }
    }

    fn metric(text: &str) -> Option<f64> {
        evaluate_number(&parse(text, ExpressionPurpose::Metric).unwrap(), &World).unwrap()
    }

    fn claim(text: &str) -> Option<bool> {
        evaluate_truth(&parse(text, ExpressionPurpose::Claim).unwrap(), &World).unwrap()
    }

    #[test]
    fn arithmetic_binds_as_in_school() {
        for (text, expected) in [
            ("1 + 2 * 3", 7.0),
            ("(1 + 2) * 3", 9.0),
            ("8 - 3 - 2", 3.0),
            ("16 / 4 / 2", 2.0),
            ("-2 ^ 2", -4.0),
            ("2 ^ 3 ^ 2", 512.0),
            ("2 ^ -1", 0.5),
            ("--3", 3.0),
            ("1e3 + 1_000 + 1.5e-1", 2000.15),
            ("x * 2", 14.0),
            ("abs(-4) + sqrt(9) + log10(1000)", 10.0),
            ("ln(exp(2))", 2.0),
        ] {
            assert!((metric(text).unwrap() - expected).abs() < 1e-12, "{text}");
        }
    }

    #[test]
    fn flows_are_picked_by_name_and_reduced() {
        assert_eq!(metric("rx_packets[\"a\"]"), Some(10.0));
        assert_eq!(metric("sum(rx_packets[\"*\"])"), Some(30.0));
        assert_eq!(metric("rx_packets[\"*.reverse\"]"), Some(30.0));
        assert_eq!(metric("mean(rx_packets['?'], 60)"), Some(30.0));
        assert_eq!(metric("max(rx_packets['*'] / 5)"), Some(4.0));
        assert_eq!(metric("min(3, 1, 2)"), Some(1.0));
        assert_eq!(metric("median(3, 1, 2, 10)"), Some(2.5));
        assert_eq!(metric("count(goodput_bps['*'])"), Some(2.0));
        // Jain's index of 10 and 20: 30^2 / (2 (100 + 400)) = 0.9.
        assert_eq!(metric("sum(rx_packets['*'])^2 / (count(rx_packets['*']) * sum(rx_packets['*']^2))"), Some(0.9));
    }

    #[test]
    fn series_are_cut_at_their_times() {
        // 4 + 9 + 16
        assert_eq!(metric("sum(series('link', 'queue_bytes', 2, 4))"), Some(29.0));
        assert_eq!(metric("count(series('link', 'queue_bytes'))"), Some(10.0));
    }

    #[test]
    fn parts_and_spread_of_a_list() {
        // Squares from 0 to 81. The ends of thirds of ten are 10/3 = 3.33 and 20/3 = 6.67, rounded to 3 and 7.
        assert_eq!(metric("sum(part(series('l', 'm'), 1, 3))"), Some(0.0 + 1.0 + 4.0));
        assert_eq!(metric("sum(part(series('l', 'm'), 2, 3))"), Some(9.0 + 16.0 + 25.0 + 36.0));
        assert_eq!(metric("sum(part(series('l', 'm'), 3, 3))"), Some(49.0 + 64.0 + 81.0));
        assert_eq!(metric("count(part(series('l', 'm'), 1, 1))"), Some(10.0));
        for wrong in ["part(x, 0, 3)", "part(x, 4, 3)", "part(x, 1.5, 3)", "part(x, nothing, 3)"] {
            let error = evaluate_number(&parse(wrong, ExpressionPurpose::Metric).unwrap(), &World).unwrap_err();
            assert!(error.message.contains("number of the part"), "{wrong}: {error}");
        }
        // 1, 4, 9 (1 + 4 + 9 = 14): deviations from 14/3 are -11/3, -2/3, 13/3; squares sum to 294/9, over 2 is 49/3.
        let three = metric("deviation(series('l', 'm', 1, 3))").unwrap();
        assert!((three - (49.0f64 / 3.0).sqrt()).abs() < 1e-12);
        assert_eq!(metric("deviation(x)"), None);
        // Jain's index of 10 and 20: 30^2 / (2 (100 + 400)) = 0.9.
        assert_eq!(metric("jain(rx_packets['*'])"), Some(0.9));
        assert_eq!(metric("jain(rx_packets['*'] * 0)"), None);
        assert_eq!(metric("count(measured('l', 'm'))"), Some(0.0));
    }

    #[test]
    fn lateness_is_one_number_or_missing() {
        assert_eq!(metric("lateness('events.p90_s') * 4"), Some(1.0));
        assert_eq!(metric("lateness('own_drops')"), None);
    }

    #[test]
    fn event_is_one_number_or_missing() {
        assert_eq!(metric("event('fall', 'at_s') * 2"), Some(5.0));
        assert_eq!(metric("event('rise', 'at_s')"), None);
        assert_eq!(metric("count(present(event('rise', 'at_s')))"), Some(0.0));
    }

    #[test]
    fn completion_is_one_number_or_missing() {
        assert_eq!(metric("completion('a', 2, 'completed_s') - completion('a', 1, 'completed_s')"), Some(1.5));
        assert_eq!(metric("completion('a', 3, 'completed_s')"), None);
        assert_eq!(metric("count(present(completion('a', 3, 'bytes')))"), Some(0.0));
    }

    #[test]
    fn differences_are_those_of_neighbors() {
        // Squares from 1 to 16: 3, 5, 7.
        assert_eq!(metric("count(differences(series('l', 'm', 1, 4)))"), Some(3.0));
        assert_eq!(metric("sum(differences(series('l', 'm', 1, 4)) ^ 2)"), Some(9.0 + 25.0 + 49.0));
        assert_eq!(metric("max(differences(series('l', 'm', 1, 4)))"), Some(7.0));
        assert_eq!(metric("count(differences(x))"), Some(0.0));
    }

    #[test]
    fn holds_turns_a_condition_into_one_or_zero_and_keeps_missing_values() {
        assert_eq!(metric("holds(x == 7)"), Some(1.0));
        assert_eq!(metric("holds(x == 8 or x < 0)"), Some(0.0));
        assert_eq!(metric("holds(event('rise', 'at_s') > 1)"), None);
        assert_eq!(metric("sum(holds(series('l', 'm', 1, 3) > 3))"), Some(2.0));
    }

    #[test]
    fn what_is_missing_stays_missing() {
        for text in [
            "1 / 0",
            "0 / 0",
            "sqrt(-1)",
            "log10(0)",
            "10 ^ 1000",
            "nothing + 1",
            "goodput_bps['b']",
            "goodput_bps['none']",
            "mean(goodput_bps['*'])",
            "sum(goodput_bps['none'])",
            "1 + goodput_bps['b'] * 0",
            "quantile(1, nothing)",
        ] {
            assert_eq!(metric(text), None, "{text}");
        }
        assert_eq!(metric("mean(present(goodput_bps['*']))"), Some(3.0));
    }

    #[test]
    fn truths() {
        for (text, expected) in [
            ("1 < 2", Some(true)),
            ("1 < 2 < 3", Some(true)),
            ("1 < 3 < 2", Some(false)),
            ("1 <= 1 and 2 >= 3", Some(false)),
            ("1 == 1 or nothing > 1", Some(true)),
            ("not 1 != 1", Some(true)),
            ("not (1 < 2) or true", Some(true)),
            ("nothing > 1", None),
            ("nothing > 1 and false", Some(false)),
            ("nothing > 1 and true", None),
            ("metric('e', 'm') > 1", None),
            ("all(metric('e', 'two') > 0)", Some(true)),
            ("all(metric('e', 'two') > 1)", Some(false)),
            ("any(metric('e', 'two') > 1)", Some(true)),
            ("all(metric('e', 'two') > 0, nothing > 1)", None),
            ("any(metric('e', 'two') > 1, nothing > 1)", Some(true)),
        ] {
            assert_eq!(claim(text), expected, "{text}");
        }
    }

    #[test]
    fn claims_fall_into_parts() {
        let parts = |text: &str| parts(&parse(text, ExpressionPurpose::Claim).unwrap(), &World).unwrap();
        let found = parts("all(metric('e', 'two') > 1) and 1 < 2 < 3 and not (x < 1 or any(x > metric('e', 'two')))");
        // Two points, a chain as one part, and three alternatives.
        let part = Formula::Part;
        let not = Formula::Not(Box::new(Formula::Any(vec![part(3), part(4), part(5)])));
        assert_eq!(found.formula, Formula::All(vec![part(0), part(1), part(2), not]));
        let truths = [Some(false), Some(true), Some(true), Some(false), Some(true), Some(true)];
        assert_eq!(found.truths, truths);
        assert_eq!(found.places[1], (24, 1, 2));
        assert_eq!(parts("1 < 2").formula, part(0));
    }

    #[test]
    fn lists_that_do_not_fit_are_errors() {
        let error = |text: &str| evaluate_truth(&parse(text, ExpressionPurpose::Claim).unwrap(), &World).unwrap_err();
        let found = error("all(metric('e', 'runs1') > metric('e', 'two'))");
        assert_eq!((found.column, found.message.contains("3 values")), (26, true), "{found}");
        assert!(error("metric('e', 'two') > 0").message.contains("`all` or `any`"));
        let many = evaluate_number(&parse("rx_packets['*']", ExpressionPurpose::Metric).unwrap(), &World).unwrap_err();
        assert!(many.message.contains("2 values") && many.message.contains("`sum`"), "{many}");
    }

    #[test]
    fn errors_name_the_column_what_was_found_and_what_was_expected() {
        for (text, purpose, column, part) in [
            ("1 +", ExpressionPurpose::Metric, 4, "found the end, expected a number"),
            ("1 + * 2", ExpressionPurpose::Metric, 5, "found `*`"),
            ("(1 + 2", ExpressionPurpose::Metric, 7, "expected `)`"),
            ("1 2", ExpressionPurpose::Metric, 3, "found the number 2, expected an operator"),
            ("1 < 2", ExpressionPurpose::Metric, 3, "a metric requires a number"),
            ("1 + 2", ExpressionPurpose::Claim, 3, "a claim requires a condition"),
            ("1 < 2 + (3 < 4)", ExpressionPurpose::Claim, 12, "arithmetic requires a number"),
            ("1 = 2", ExpressionPurpose::Claim, 3, "expected `==`"),
            ("not 1", ExpressionPurpose::Claim, 5, "`not` requires"),
            ("1 and 1 < 2", ExpressionPurpose::Claim, 1, "`and` requires"),
            ("sqr(2)", ExpressionPurpose::Metric, 1, "did you mean `sqrt`?"),
            ("sqrt(2, 3)", ExpressionPurpose::Metric, 1, "`sqrt` takes one argument, found 2"),
            ("sum()", ExpressionPurpose::Metric, 1, "at least 1 argument"),
            ("rx_packts['a']", ExpressionPurpose::Metric, 1, "did you mean `rx_packets`?"),
            ("1 + rx_packets", ExpressionPurpose::Metric, 15, "expected `[\"FLOW\"]`"),
            ("rx_packets[a]", ExpressionPurpose::Metric, 12, "a name of a flow or link in quotation marks"),
            ("figure_rebufer_s['a']", ExpressionPurpose::Metric, 1, "did you mean `rebuffer_s`?"),
            ("measured('core', 'drops') > 1", ExpressionPurpose::Claim, 1, "`measured` reads one run"),
            ("lateness('events.p90')", ExpressionPurpose::Metric, 10, "did you mean `events.p90_s`?"),
            ("lateness('p90_s')", ExpressionPurpose::Metric, 10, "expected on_time, own_drops"),
            ("lateness(x)", ExpressionPurpose::Metric, 10, "a lateness figure in quotation marks"),
            ("lateness('on_time'", ExpressionPurpose::Metric, 19, "expected `)` to end `lateness`"),
            ("lateness('on_time') == 1", ExpressionPurpose::Claim, 1, "`lateness` reads one run"),
            ("part(1, 2)", ExpressionPurpose::Metric, 1, "`part` takes three arguments, found 2"),
            (
                "mean_delay_s['a']",
                ExpressionPurpose::Metric,
                1,
                "did you mean `sum(present(measured_delay_sum_s[\"*.main\"])) / sum(measured_rx_packets[\"*.main\"])`?",
            ),
            ("rebuffer_s['a']", ExpressionPurpose::Metric, 1, "did you mean `figure_rebuffer_s`?"),
            ("link_drops['core']", ExpressionPurpose::Metric, 1, "`drops` is not a column of numbers in links.csv"),
            ("link_link['core']", ExpressionPurpose::Metric, 1, "expected link_ and one of from_s, to_s"),
            ("link_utilization['core']", ExpressionPurpose::Metric, 1, "did you mean `utilisation`"),
            ("rx_packets['a'", ExpressionPurpose::Metric, 15, "expected `]`"),
            ("rx_packets['a'] > 1", ExpressionPurpose::Claim, 1, "a claim cannot read the flows or links of one run"),
            ("metric('a', 'b')", ExpressionPurpose::Metric, 1, "is only permitted in a claim"),
            ("series('a', 'b') > 1", ExpressionPurpose::Claim, 1, "is only permitted in a metric"),
            ("metric('a') > 1", ExpressionPurpose::Claim, 11, "and a metric's name"),
            ("metric('a', 'b', 'men') > 1", ExpressionPurpose::Claim, 18, "did you mean `mean`?"),
            ("metric('a', 'b', 'low') > 1", ExpressionPurpose::Claim, 18, "compare the mean itself"),
            ("metric('a', 'b', 'max') > 1", ExpressionPurpose::Claim, 18, "extremes depend on the number of runs"),
            ("metric('a', 'b', 'n') > 1", ExpressionPurpose::Claim, 18, "enough replications"),
            ("max(runs('a', 'b')) > 1", ExpressionPurpose::Claim, 1, "write `mean`, `median` or `deviation`"),
            (
                "min(1, present(runs('a', 'b'))) > 1",
                ExpressionPurpose::Claim,
                1,
                "write `mean`, `median` or `deviation`",
            ),
            ("all(runs('a', 'b') > 1)", ExpressionPurpose::Claim, 20, "cannot compare single runs"),
            ("paired_low(runs('a', 'b'), 1) > 1", ExpressionPurpose::Claim, 1, "write a difference of means"),
            ("ratio_high(runs('a', 'b'), 1) > 1", ExpressionPurpose::Claim, 1, "write a ratio of medians"),
            ("metric('a', 'b', count) > 1", ExpressionPurpose::Claim, 23, "expected `=` after the axis `count`"),
            ("metric('a', 'b', count > 'x') > 1", ExpressionPurpose::Claim, 26, "expected a number"),
            ("'a' > 1", ExpressionPurpose::Claim, 1, "found the text"),
            ("1.2.3", ExpressionPurpose::Metric, 1, "`1.2.3` is not a number"),
            ("2 $ 3", ExpressionPurpose::Metric, 3, "unexpected character `$`"),
            ("rx_packets['a]", ExpressionPurpose::Metric, 12, "no closing quotation mark"),
            ("1e999", ExpressionPurpose::Metric, 1, "not a number"),
        ] {
            let error = parse(text, purpose).unwrap_err();
            assert_eq!(error.column, column, "{text}: {error}");
            assert!(error.message.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn depth_is_limited() {
        let deep = format!("{}1{}", "(".repeat(5000), ")".repeat(5000));
        assert!(parse(&deep, ExpressionPurpose::Metric).unwrap_err().message.contains("nested more"));
        assert!(parse(&"-".repeat(5000), ExpressionPurpose::Metric).unwrap_err().message.contains("nested more"));
        assert!(parse(&"not ".repeat(5000), ExpressionPurpose::Claim).unwrap_err().message.contains("nested more"));
        let long = vec!["1"; 5000].join("+");
        assert!(parse(&long, ExpressionPurpose::Metric).unwrap_err().message.contains("more than 200"));
    }

    #[test]
    fn patterns() {
        for (pattern, flow, expected) in [
            ("*", "data", true),
            ("*", "data.reverse", false),
            ("*.reverse", "data.reverse", true),
            ("data", "data", true),
            ("data", "data.1", false),
            ("data.*", "data.12", true),
            ("d?ta*a", "dataxxa", true),
            ("d?ta*a", "dataxxb", false),
            ("**a**", "bab", true),
            ("", "", true),
            ("?", "", false),
            ("a*b*c", "a-b-b-c", true),
        ] {
            assert_eq!(flow_matches(pattern, flow), expected, "{pattern} {flow}");
        }
    }

    proptest! {
        #[test]
        fn nothing_panics(text in "[a-z0-9 ()<>=+*/^.,'\\[\\]-]{0,60}") {
            for purpose in [ExpressionPurpose::Metric, ExpressionPurpose::Claim] {
                if let Ok(expression) = parse(&text, purpose) {
                    let _ = evaluate_number(&expression, &World);
                    let _ = evaluate_truth(&expression, &World);
                }
            }
        }

        #[test]
        fn real_words_in_any_order_do_not_panic(words in prop::collection::vec(prop::sample::select(vec![
            "1", "x", "(", ")", "+", "-", "*", "/", "^", "<", "==", "and", "or", "not", "sum(", "all(", "count(", ",",
            "rx_packets['*']", "goodput_bps['b']", "lateness('on_time')", "metric('e', 'two')", "runs('e', 'runs1')", "true", "quantile(",
        ]), 0..20)) {
            let text = words.join(" ");
            for purpose in [ExpressionPurpose::Metric, ExpressionPurpose::Claim] {
                match parse(&text, purpose) {
                    Ok(expression) => {
                        let _ = evaluate_number(&expression, &World);
                        let _ = evaluate_truth(&expression, &World);
                    }
                    Err(error) => prop_assert!(error.column <= text.chars().count() + 1),
                }
            }
        }

        #[test]
        fn numbers_read_back(value in -1e12..1e12f64) {
            prop_assert_eq!(metric(&format!("{value}")), Some(value));
        }
    }
}
