//! The parser for the expressions that `expression.rs` describes: a tokenizer, and one function for each level of
//! precedence. It checks the kinds of values, so that no evaluation can fail because of them.

use crate::expression::{
    Arithmetic, COMPARISONS, Comparison, Expression, ExpressionError, ExpressionNode, ExpressionPurpose, FUNCTIONS,
    Filter, Function, Literal, Logic, Lookup, Operation, STATISTICS, ValueKind, figure_name, link_column,
};
use crate::lateness;
use crate::single_metrics::expression_of_summary;
use crate::words::{list_of, suggestion};
use fullpipe_archive::{COMPLETIONS, FLOWS, LINKS};
use fullpipe_lab::metric_names;
use std::fmt;

type Parsed<T = ExpressionNode> = Result<T, ExpressionError>;

/// The maximum nesting depth of an expression.
const MAX_DEPTH: usize = 60;
/// The maximum number of operators of one precedence level in a row.
const MAX_CHAIN: usize = 200;
/// The functions that read the records of one run, for metrics only.
const OF_ONE_RUN: [&str; 5] = ["series", "measured", "event", "completion", "lateness"];
/// The largest number of an exchange or transfer; all integers up to it are exact as `f64`.
const MAX_COMPLETION: f64 = 1e15;

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Number(f64),
    Text(String),
    Word(String),
    Symbol(&'static str),
    End,
}

impl fmt::Display for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Token::Number(number) => write!(formatter, "the number {number}"),
            Token::Text(text) => write!(formatter, "the text \"{text}\""),
            Token::Word(word) => write!(formatter, "`{word}`"),
            Token::Symbol(symbol) => write!(formatter, "`{symbol}`"),
            Token::End => formatter.write_str("the end"),
        }
    }
}

/// Longer symbols are first, so that `<=` is not read as `<`.
const SYMBOLS: [&str; 18] =
    ["<=", ">=", "==", "!=", "<", ">", "=", "+", "-", "*", "/", "^", "(", ")", "[", "]", ",", "%"];

fn tokens(text: &str) -> Result<Vec<(Token, usize)>, ExpressionError> {
    let characters: Vec<char> = text.chars().collect();
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(&character) = characters.get(at) {
        let column = at + 1;
        if character.is_whitespace() {
            at += 1;
        } else if character.is_ascii_digit() || character == '.' {
            let start = at;
            while let Some(&next) = characters.get(at) {
                let exponent_sign = matches!(next, '+' | '-') && at > start && matches!(characters[at - 1], 'e' | 'E');
                if !(next.is_ascii_alphanumeric() || next == '.' || next == '_' || exponent_sign) {
                    break;
                }
                at += 1;
            }
            let written: String = characters[start..at].iter().collect();
            let number = written.replace('_', "").parse::<f64>().ok().filter(|number| number.is_finite());
            let Some(number) = number else {
                return Err(ExpressionError::new(column, format!("`{written}` is not a number")));
            };
            found.push((Token::Number(number), column));
        } else if character.is_alphabetic() || character == '_' {
            let start = at;
            while characters.get(at).is_some_and(|next| next.is_alphanumeric() || *next == '_') {
                at += 1;
            }
            found.push((Token::Word(characters[start..at].iter().collect()), column));
        } else if character == '"' || character == '\'' {
            let start = at + 1;
            let Some(length) = characters[start..].iter().position(|next| *next == character) else {
                return Err(ExpressionError::new(column, "the text has no closing quotation mark"));
            };
            found.push((Token::Text(characters[start..start + length].iter().collect()), column));
            at = start + length + 1;
        } else {
            let rest: String = characters[at..].iter().take(2).collect();
            let Some(symbol) = SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol)) else {
                return Err(ExpressionError::new(column, format!("unexpected character `{character}`")));
            };
            found.push((Token::Symbol(symbol), column));
            at += symbol.len();
        }
    }
    found.push((Token::End, characters.len() + 1));
    Ok(found)
}

/// Parses and checks an expression.
///
/// # Errors
/// An error in the expression, with its column, what was found and what is accepted.
///
/// ```
/// use fullpipe_study::expression::{ExpressionPurpose, parse};
/// assert!(parse("rx_bytes[\"bulk\"] * 8 / completion_s[\"bulk\"]", ExpressionPurpose::Metric).is_ok());
/// let error = parse("rx_byte[\"bulk\"] * 8", ExpressionPurpose::Metric).unwrap_err();
/// assert_eq!(error.column, 1);
/// assert!(error.message.contains("did you mean `rx_bytes`"));
/// ```
pub fn parse(text: &str, purpose: ExpressionPurpose) -> Result<Expression, ExpressionError> {
    let mut parser = Parser { tokens: tokens(text)?, at: 0, purpose, depth: 0 };
    let root = parser.or()?;
    if parser.peek().0 != Token::End {
        return unexpected(parser.peek(), "an operator or the end");
    }
    match purpose {
        ExpressionPurpose::Metric => require(&root, ValueKind::Number, "a metric")?,
        ExpressionPurpose::Claim => require(&root, ValueKind::Boolean, "a claim")?,
    }
    Ok(Expression { root })
}

fn unexpected<T>((found, column): (Token, usize), expected: impl fmt::Display) -> Parsed<T> {
    Err(ExpressionError::new(column, format!("found {found}, expected {expected}")))
}

fn require(node: &ExpressionNode, expected: ValueKind, who: &str) -> Parsed<()> {
    match (node.kind, expected) {
        (ValueKind::Number, ValueKind::Boolean) => Err(ExpressionError::new(
            node.column,
            format!("found a number, but {who} requires a condition, such as a comparison"),
        )),
        (ValueKind::Boolean, ValueKind::Number) => {
            Err(ExpressionError::new(node.column, format!("found a condition, but {who} requires a number")))
        }
        _ => Ok(()),
    }
}

struct Parser {
    tokens: Vec<(Token, usize)>,
    at: usize,
    purpose: ExpressionPurpose,
    depth: usize,
}

impl Parser {
    fn peek(&self) -> (Token, usize) {
        self.tokens.get(self.at).or(self.tokens.last()).cloned().unwrap_or((Token::End, 1))
    }

    fn next(&mut self) -> (Token, usize) {
        let token = self.peek();
        self.at += 1;
        token
    }

    /// If the next token is this symbol or word, consumes it. Returns whether it was.
    fn takes(&mut self, wanted: &str) -> bool {
        let found = match self.peek().0 {
            Token::Symbol(symbol) => symbol == wanted,
            Token::Word(word) => word == wanted,
            _ => false,
        };
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, symbol: &'static str, after: &str) -> Parsed<()> {
        if self.takes(symbol) { Ok(()) } else { unexpected(self.peek(), format_args!("`{symbol}` {after}")) }
    }

    fn deeper(&mut self, column: usize, inside: impl FnOnce(&mut Self) -> Parsed) -> Parsed {
        if self.depth >= MAX_DEPTH {
            return Err(ExpressionError::new(
                column,
                format!("the expression is nested more than {MAX_DEPTH} levels deep"),
            ));
        }
        self.depth += 1;
        let result = inside(self);
        self.depth -= 1;
        result
    }

    /// Parses operands that operators of one precedence level join, from left to right.
    fn chain<T: Copy>(
        &mut self,
        operators: &[(&str, T)],
        operand: fn(&mut Self) -> Parsed,
        join: fn(T, ExpressionNode, ExpressionNode, usize) -> Parsed,
    ) -> Parsed {
        let mut left = operand(self)?;
        for links in 0.. {
            let column = self.peek().1;
            let Some((_, operator)) = operators.iter().find(|(name, _)| self.takes(name)) else { break };
            // A chain of operators becomes a tree whose depth is the length of the chain.
            if links == MAX_CHAIN {
                let message = format!("more than {MAX_CHAIN} operators in a row; use brackets or `sum`");
                return Err(ExpressionError::new(column, message));
            }
            let right = operand(self)?;
            left = join(*operator, left, right, column)?;
        }
        Ok(left)
    }

    fn or(&mut self) -> Parsed {
        self.chain(&[("or", Logic::Or)], Self::and, logic)
    }

    fn and(&mut self) -> Parsed {
        self.chain(&[("and", Logic::And)], Self::not, logic)
    }

    fn not(&mut self) -> Parsed {
        let column = self.peek().1;
        if !self.takes("not") {
            return self.comparison();
        }
        let inner = self.deeper(column, Self::not)?;
        require(&inner, ValueKind::Boolean, "`not`")?;
        Ok(ExpressionNode { column, kind: ValueKind::Boolean, operation: Operation::Not(Box::new(inner)) })
    }

    fn comparison_symbol(&mut self) -> Option<Comparison> {
        COMPARISONS.into_iter().find(|(symbol, _)| self.takes(symbol)).map(|(_, comparison)| comparison)
    }

    fn comparison(&mut self) -> Parsed {
        let first = self.sum()?;
        let column = self.peek().1;
        let mut rest = Vec::new();
        while let Some(comparison) = self.comparison_symbol() {
            let node = self.sum()?;
            require(&node, ValueKind::Number, "a comparison")?;
            rest.push((comparison, node));
        }
        if rest.is_empty() {
            let (token, column) = self.peek();
            if token == Token::Symbol("=") {
                return Err(ExpressionError::new(column, "found `=`, expected `==` to compare"));
            }
            return Ok(first);
        }
        require(&first, ValueKind::Number, "a comparison")?;
        if lists_runs(&first) || rest.iter().any(|(_, node)| lists_runs(node)) {
            let message = "cannot compare single runs, because the outcome depends on their number: reduce `runs` with \
                           `mean`, `median` or `deviation`";
            return Err(ExpressionError::new(column, message));
        }
        Ok(ExpressionNode { column, kind: ValueKind::Boolean, operation: Operation::Comparison(Box::new(first), rest) })
    }

    fn sum(&mut self) -> Parsed {
        self.chain(&[("+", Arithmetic::Add), ("-", Arithmetic::Subtract)], Self::product, arithmetic)
    }

    fn product(&mut self) -> Parsed {
        self.chain(&[("*", Arithmetic::Multiply), ("/", Arithmetic::Divide)], Self::negation, arithmetic)
    }

    fn negation(&mut self) -> Parsed {
        let column = self.peek().1;
        if !self.takes("-") {
            return self.power();
        }
        let inner = self.deeper(column, Self::negation)?;
        require(&inner, ValueKind::Number, "`-`")?;
        Ok(ExpressionNode { column, kind: ValueKind::Number, operation: Operation::Negate(Box::new(inner)) })
    }

    fn power(&mut self) -> Parsed {
        let base = self.atom()?;
        let column = self.peek().1;
        if !self.takes("^") {
            return Ok(base);
        }
        let exponent = self.deeper(column, Self::negation)?;
        arithmetic(Arithmetic::Power, base, exponent, column)
    }

    fn atom(&mut self) -> Parsed {
        let (token, column) = self.next();
        match token {
            Token::Number(number) => {
                Ok(ExpressionNode { column, kind: ValueKind::Number, operation: Operation::Number(number) })
            }
            Token::Symbol("(") => {
                let inner = self.deeper(column, Self::or)?;
                self.expect(")", "to close the bracket")?;
                Ok(inner)
            }
            Token::Word(word) if matches!(word.as_str(), "true" | "false") => {
                Ok(ExpressionNode { column, kind: ValueKind::Boolean, operation: Operation::Boolean(word == "true") })
            }
            Token::Word(word) => {
                if self.takes("(") {
                    self.deeper(column, |parser| parser.call(&word, column))
                } else if self.takes("[") {
                    self.column_of_a_table(&word, column)
                } else if FLOWS.numeric_column(&word).is_some() {
                    unexpected(self.peek(), format_args!("`[\"FLOW\"]` after the column `{word}`"))
                } else {
                    Ok(ExpressionNode { column, kind: ValueKind::Number, operation: Operation::Name(word) })
                }
            }
            found => unexpected((found, column), "a number, a name, a function, `-`, `not` or `(`"),
        }
    }

    fn column_of_a_table(&mut self, name: &str, column: usize) -> Parsed {
        if FLOWS.numeric_column(name).is_none() && link_column(name).is_none() && figure_name(name).is_none() {
            let message = match (name.strip_prefix("link_"), name.strip_prefix("figure_")) {
                (_, Some(figure)) => {
                    let (near, all) = (suggestion(figure, metric_names()), list_of(metric_names()));
                    format!("unknown application metric `{figure}`{near}; expected figure_ and one of {all}")
                }
                (Some(of_link), _) => {
                    let (near, all) = (suggestion(of_link, LINKS.numeric_names()), list_of(LINKS.numeric_names()));
                    let file = LINKS.file;
                    format!("`{of_link}` is not a column of numbers in {file}{near}; expected link_ and one of {all}")
                }
                (None, None) if metric_names().any(|metric| metric == name) => {
                    format!(
                        "`{name}` is not a column of {}, but an application metric; did you mean `figure_{name}`?",
                        FLOWS.file
                    )
                }
                (None, None) if expression_of_summary(name).is_some() => {
                    let expression = expression_of_summary(name).unwrap_or_default();
                    format!("`{name}` is not a column of {}; did you mean `{expression}`?", FLOWS.file)
                }
                (None, None) => {
                    let (near, all) = (suggestion(name, FLOWS.numeric_names()), list_of(FLOWS.numeric_names()));
                    format!("`{name}` is not a column of {}{near}; expected {all}", FLOWS.file)
                }
            };
            return Err(ExpressionError::new(column, message));
        }
        if self.purpose == ExpressionPurpose::Claim {
            return Err(ExpressionError::new(
                column,
                "a claim cannot read the flows or links of one run; expected a metric at points, metric(\"EXPERIMENT\", \"METRIC\")",
            ));
        }
        let pattern = self.text("a name of a flow or link in quotation marks")?;
        self.expect("]", "after the flow's name")?;
        let operation = Operation::Column { column: name.to_owned(), pattern };
        Ok(ExpressionNode { column, kind: ValueKind::Number, operation })
    }

    fn text(&mut self, what: &str) -> Parsed<String> {
        match self.next() {
            (Token::Text(text), _) => Ok(text),
            found => unexpected(found, what),
        }
    }

    fn call(&mut self, name: &str, column: usize) -> Parsed {
        match (name, self.purpose) {
            ("metric" | "runs", ExpressionPurpose::Claim) => return self.lookup(name == "runs", column),
            ("metric" | "runs", ExpressionPurpose::Metric) => {
                let message =
                    format!("`{name}` reads a whole study and is only permitted in a claim; a metric reads one run");
                return Err(ExpressionError::new(column, message));
            }
            ("paired_low" | "paired_high", _) => {
                let message = "ends of intervals are not supported: a claim is judged by its support in resamples of the replications, \
                               which pair the points; write a difference of means, metric(...) - metric(...)";
                return Err(ExpressionError::new(column, message));
            }
            ("ratio_low" | "ratio_high", _) => {
                let message = "ends of intervals are not supported: a claim is judged by its support in resamples of the replications; \
                               write a ratio of medians, metric(..., \"median\") / metric(..., \"median\")";
                return Err(ExpressionError::new(column, message));
            }
            ("series", ExpressionPurpose::Metric) => return self.series(column),
            ("measured", ExpressionPurpose::Metric) => return self.measured(column),
            ("event", ExpressionPurpose::Metric) => return self.event(column),
            ("completion", ExpressionPurpose::Metric) => return self.completion(column),
            ("lateness", ExpressionPurpose::Metric) => return self.lateness(column),
            (name, ExpressionPurpose::Claim) if OF_ONE_RUN.contains(&name) => {
                return Err(ExpressionError::new(
                    column,
                    format!("`{name}` reads one run and is only permitted in a metric"),
                ));
            }
            _ => {}
        }
        let Some((_, function, kind, fewest, most)) = FUNCTIONS.into_iter().find(|function| function.0 == name) else {
            let mut known: Vec<&str> = FUNCTIONS.iter().map(|function| function.0).collect();
            known.extend(match self.purpose {
                ExpressionPurpose::Metric => OF_ONE_RUN.as_slice(),
                ExpressionPurpose::Claim => ["metric", "runs"].as_slice(),
            });
            let message = format!(
                "`{name}` is not a function{}; expected {}",
                suggestion(name, known.iter().copied()),
                list_of(known.iter().copied())
            );
            return Err(ExpressionError::new(column, message));
        };
        let mut arguments = Vec::new();
        while !self.takes(")") {
            if !arguments.is_empty() {
                self.expect(",", "or `)` after an argument")?;
            }
            let argument = self.or()?;
            require(&argument, kind, &format!("`{name}`"))?;
            if matches!(function, Function::Min | Function::Max | Function::Quantile) && lists_runs(&argument) {
                let message = format!(
                    "`{name}` over runs is not supported, because it depends on their number: write `mean`, `median` or `deviation`"
                );
                return Err(ExpressionError::new(column, message));
            }
            arguments.push(argument);
        }
        if arguments.len() < fewest || arguments.len() > most {
            let expected = match (fewest, most) {
                (1, 1) => "one argument".to_owned(),
                (2, 2) => "two arguments".to_owned(),
                (3, 3) => "three arguments".to_owned(),
                _ => format!("at least {fewest} argument"),
            };
            let message = format!("`{name}` takes {expected}, found {}", arguments.len());
            return Err(ExpressionError::new(column, message));
        }
        let kind = if function == Function::Holds { ValueKind::Number } else { kind };
        Ok(ExpressionNode { column, kind, operation: Operation::Call(function, arguments) })
    }

    /// Parses `series("SUBJECT", "METRIC")`, optionally with `, FROM, TO` in seconds. Both ends are included.
    fn series(&mut self, column: usize) -> Parsed {
        let subject = self.text("a subject's name in quotation marks")?;
        self.expect(",", "and a metric of series.csv")?;
        let metric = self.text("a metric's name in quotation marks")?;
        let (mut from_s, mut to_s) = (f64::NEG_INFINITY, f64::INFINITY);
        if self.takes(",") {
            from_s = self.number("the start time in seconds")?;
            self.expect(",", "and the end time in seconds")?;
            to_s = self.number("the end time in seconds")?;
        }
        self.expect(")", "to end `series`")?;
        let operation = Operation::Series { subject, metric, from_s, to_s };
        Ok(ExpressionNode { column, kind: ValueKind::Number, operation })
    }

    /// Parses `measured("SUBJECT", "METRIC")`.
    fn measured(&mut self, column: usize) -> Parsed {
        let subject = self.text("a subject's name in quotation marks")?;
        self.expect(",", "and a metric of series.csv")?;
        let metric = self.text("a metric's name in quotation marks")?;
        self.expect(")", "to end `measured`")?;
        Ok(ExpressionNode { column, kind: ValueKind::Number, operation: Operation::Measured { subject, metric } })
    }

    /// Parses `event("EVENT", "NAME")`.
    fn event(&mut self, column: usize) -> Parsed {
        let event = self.text("an event's name in quotation marks")?;
        self.expect(",", "and `met_s`, `at_s` or a metric that it records")?;
        let value = self.text("`met_s`, `at_s` or a metric's name in quotation marks")?;
        self.expect(")", "to end `event`")?;
        Ok(ExpressionNode { column, kind: ValueKind::Number, operation: Operation::Event { event, value } })
    }

    /// Parses `completion("FLOW", N, "COLUMN")`.
    fn completion(&mut self, column: usize) -> Parsed {
        let flow = self.text("a flow's name in quotation marks")?;
        self.expect(",", "and the number of an exchange or transfer")?;
        let at = self.peek().1;
        let number = self.number("the number of an exchange or transfer, from 1")?;
        if number.fract() != 0.0 || !(1.0..=MAX_COMPLETION).contains(&number) {
            let message = format!(
                "{number} is not the number of an exchange or transfer; expected an integer from 1 to {MAX_COMPLETION}"
            );
            return Err(ExpressionError::new(at, message));
        }
        self.expect(",", "and a column of completions.csv")?;
        let at = self.peek().1;
        let name = self.text("a column's name in quotation marks")?;
        let Some(wanted) = COMPLETIONS.numeric_column(&name) else {
            let (near, all) = (suggestion(&name, COMPLETIONS.numeric_names()), list_of(COMPLETIONS.numeric_names()));
            let message = format!("`{name}` is not a column of numbers in {}{near}; expected {all}", COMPLETIONS.file);
            return Err(ExpressionError::new(at, message));
        };
        self.expect(")", "to end `completion`")?;
        let operation = Operation::Completion { flow, number: number as u64, column: wanted.name };
        Ok(ExpressionNode { column, kind: ValueKind::Number, operation })
    }

    /// Parses `lateness("NAME")`.
    fn lateness(&mut self, column: usize) -> Parsed {
        let at = self.peek().1;
        let name = self.text("a lateness figure in quotation marks")?;
        if !lateness::names().any(|known| known == name) {
            let all: Vec<String> = lateness::names().collect();
            let near = suggestion(&name, all.iter().map(String::as_str));
            let message = format!(
                "`{name}` is not a lateness figure{near}; expected {}, or one of {} with a dot and one of {}",
                list_of(lateness::FIGURES),
                lateness::spreads().join(", "),
                lateness::figures_of_spreads().join(", ")
            );
            return Err(ExpressionError::new(at, message));
        }
        self.expect(")", "to end `lateness`")?;
        Ok(ExpressionNode { column, kind: ValueKind::Number, operation: Operation::Lateness(name) })
    }

    fn number(&mut self, what: &str) -> Parsed<f64> {
        let negative = self.takes("-");
        match self.next() {
            (Token::Number(number), _) => Ok(if negative { -number } else { number }),
            found => unexpected(found, what),
        }
    }

    /// Parses `metric("EXPERIMENT", "METRIC", "STATISTIC", AXIS = VALUE, ...)`, where the default statistic is the
    /// mean, or `runs("EXPERIMENT", "METRIC", AXIS = VALUE, ...)`.
    fn lookup(&mut self, every_run: bool, column: usize) -> Parsed {
        let experiment = self.text("an experiment's name in quotation marks")?;
        self.expect(",", "and a metric's name")?;
        let metric = self.text("a metric's name in quotation marks")?;
        let mut statistic = (!every_run).then(|| "mean".to_owned());
        let mut filters = Vec::new();
        while !self.takes(")") {
            self.expect(",", "or `)`")?;
            let (token, column) = self.next();
            match token {
                Token::Text(name) if !every_run && filters.is_empty() => {
                    if let Some(instead) = instead_of(&name) {
                        let message = format!("`{name}` over runs is not supported in a claim: {instead}");
                        return Err(ExpressionError::new(column, message));
                    }
                    if !STATISTICS.contains(&name.as_str()) {
                        let message = format!(
                            "`{name}` is not a statistic{}; expected {}",
                            suggestion(&name, STATISTICS),
                            list_of(STATISTICS)
                        );
                        return Err(ExpressionError::new(column, message));
                    }
                    statistic = Some(name);
                }
                Token::Word(axis) => filters.push(self.filter(axis, column)?),
                found => return unexpected((found, column), "AXIS = VALUE"),
            }
        }
        let lookup = Lookup { column, experiment, metric, statistic, filters };
        Ok(ExpressionNode { column, kind: ValueKind::Number, operation: Operation::Lookup(lookup) })
    }

    fn filter(&mut self, axis: String, column: usize) -> Parsed<Filter> {
        let comparison = if self.takes("=") {
            Comparison::Equal
        } else if let Some(comparison) = self.comparison_symbol() {
            comparison
        } else {
            return unexpected(self.peek(), format_args!("`=` after the axis `{axis}`"));
        };
        let ordered = !matches!(comparison, Comparison::Equal | Comparison::NotEqual);
        let negative = self.takes("-");
        let literal = match self.next() {
            (Token::Number(number), _) => Literal::Number(if negative { -number } else { number }),
            (Token::Text(text), _) if !negative && !ordered => Literal::Text(text),
            (Token::Word(word), _) if !negative && !ordered && matches!(word.as_str(), "true" | "false") => {
                Literal::Text(word)
            }
            found if ordered => return unexpected(found, "a number"),
            found => return unexpected(found, "a number or a text in quotation marks"),
        };
        Ok(Filter { column, axis, comparison, literal })
    }
}

/// Returns an alternative to a statistic over runs that claims do not support.
fn instead_of(statistic: &str) -> Option<&'static str> {
    match statistic {
        "low" | "high" | "ci95" => Some("the claim is judged by its support in resamples, so compare the mean itself"),
        "min" | "max" => Some(
            "extremes depend on the number of runs; compare the mean (the mean of a count is 0 only if it is 0 in every run) or \
             the median, or bound the `deviation`",
        ),
        "n" => Some("verdicts already require enough replications"),
        _ => None,
    }
}

/// Returns whether the values of a node are those of single runs.
fn lists_runs(node: &ExpressionNode) -> bool {
    match &node.operation {
        Operation::Lookup(lookup) => lookup.statistic.is_none(),
        Operation::Negate(inner) | Operation::Not(inner) => lists_runs(inner),
        Operation::Arithmetic(_, left, right) => lists_runs(left) || lists_runs(right),
        Operation::Call(function, arguments) => {
            let reduces = matches!(
                function,
                Function::Sum
                    | Function::Mean
                    | Function::Median
                    | Function::Count
                    | Function::Jain
                    | Function::Deviation
                    | Function::All
                    | Function::Any
            );
            !reduces && arguments.iter().any(lists_runs)
        }
        _ => false,
    }
}

fn logic(logic: Logic, left: ExpressionNode, right: ExpressionNode, column: usize) -> Parsed {
    let who = if logic == Logic::And { "`and`" } else { "`or`" };
    require(&left, ValueKind::Boolean, who)?;
    require(&right, ValueKind::Boolean, who)?;
    Ok(ExpressionNode {
        column,
        kind: ValueKind::Boolean,
        operation: Operation::Logic(logic, Box::new(left), Box::new(right)),
    })
}

fn arithmetic(with: Arithmetic, left: ExpressionNode, right: ExpressionNode, column: usize) -> Parsed {
    require(&left, ValueKind::Number, "arithmetic")?;
    require(&right, ValueKind::Number, "arithmetic")?;
    Ok(ExpressionNode {
        column,
        kind: ValueKind::Number,
        operation: Operation::Arithmetic(with, Box::new(left), Box::new(right)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn node(kind: ValueKind, operation: Operation) -> ExpressionNode {
        ExpressionNode { column: 0, kind, operation }
    }

    /// Numbers: leaves, and operations on them. Only a metric refers to columns of one run.
    fn number(purpose: ExpressionPurpose) -> impl Strategy<Value = ExpressionNode> {
        let column = (prop::sample::select(vec!["goodput_bps", "rx_bytes", "lost_packets"]), "[a-z*?.]{1,6}")
            .prop_map(|(column, pattern)| Operation::Column { column: column.to_string(), pattern });
        let leaf = prop_oneof![
            (0..1000_u32).prop_map(|number| Operation::Number(f64::from(number) / 8.0)),
            // A name that is not a word of the language.
            "[xyz]{1,3}".prop_map(Operation::Name),
            if purpose == ExpressionPurpose::Metric { column.boxed() } else { Just(Operation::Number(7.0)).boxed() },
        ];
        leaf.prop_map(|operation| node(ValueKind::Number, operation)).prop_recursive(4, 24, 3, |inner| {
            let with = prop::sample::select(vec![
                Arithmetic::Add,
                Arithmetic::Subtract,
                Arithmetic::Multiply,
                Arithmetic::Divide,
                Arithmetic::Power,
            ]);
            let function = prop::sample::select(vec![Function::Abs, Function::Sum, Function::Max]);
            prop_oneof![
                (with, inner.clone(), inner.clone()).prop_map(|(with, left, right)| Operation::Arithmetic(
                    with,
                    Box::new(left),
                    Box::new(right)
                )),
                inner.clone().prop_map(|inner| Operation::Negate(Box::new(inner))),
                (function, inner).prop_map(|(function, inner)| Operation::Call(function, vec![inner])),
            ]
            .prop_map(|operation| node(ValueKind::Number, operation))
        })
    }

    /// Comparisons of numbers, and their combinations.
    fn truth() -> impl Strategy<Value = ExpressionNode> {
        let comparison = prop::sample::select(vec![
            Comparison::Less,
            Comparison::LessOrEqual,
            Comparison::Greater,
            Comparison::GreaterOrEqual,
            Comparison::Equal,
            Comparison::NotEqual,
        ]);
        let compared = (
            number(ExpressionPurpose::Claim),
            prop::collection::vec((comparison, number(ExpressionPurpose::Claim)), 1..3),
        )
            .prop_map(|(first, rest)| Operation::Comparison(Box::new(first), rest));
        let leaf = prop_oneof![1 => any::<bool>().prop_map(Operation::Boolean), 3 => compared];
        leaf.prop_map(|operation| node(ValueKind::Boolean, operation)).prop_recursive(3, 12, 2, |inner| {
            let logic = prop_oneof![Just(Logic::And), Just(Logic::Or)];
            prop_oneof![
                (logic, inner.clone(), inner.clone()).prop_map(|(logic, left, right)| Operation::Logic(
                    logic,
                    Box::new(left),
                    Box::new(right)
                )),
                inner.prop_map(|inner| Operation::Not(Box::new(inner))),
            ]
            .prop_map(|operation| node(ValueKind::Boolean, operation))
        })
    }

    /// Returns the precedence of an operation, according to the list at the beginning of `expression.rs`. An operand
    /// with lower precedence is in parentheses.
    fn binding(node: &ExpressionNode) -> u8 {
        match &node.operation {
            Operation::Logic(Logic::Or, ..) => 0,
            Operation::Logic(Logic::And, ..) => 1,
            Operation::Not(_) => 2,
            Operation::Comparison(..) => 3,
            Operation::Arithmetic(Arithmetic::Add | Arithmetic::Subtract, ..) => 4,
            Operation::Arithmetic(Arithmetic::Multiply | Arithmetic::Divide, ..) => 5,
            Operation::Negate(_) => 6,
            Operation::Arithmetic(Arithmetic::Power, ..) => 7,
            _ => 8,
        }
    }

    /// Returns the text of an expression with the minimum number of parentheses, or with parentheses around every
    /// operation.
    fn written(node: &ExpressionNode, all_brackets: bool) -> String {
        let operand = |operand: &ExpressionNode, least: u8| {
            let text = written(operand, all_brackets);
            if all_brackets || binding(operand) < least { format!("({text})") } else { text }
        };
        let own = binding(node);
        match &node.operation {
            Operation::Number(number) => number.to_string(),
            Operation::Boolean(truth) => truth.to_string(),
            Operation::Name(name) => name.clone(),
            Operation::Column { column, pattern } => format!("{column}[\"{pattern}\"]"),
            Operation::Negate(inner) => format!("-{}", operand(inner, own)),
            Operation::Not(inner) => format!("not {}", operand(inner, own)),
            // Right-associative: the exponent is a negation or an operation with higher precedence, the base is
            // neither.
            Operation::Arithmetic(Arithmetic::Power, base, exponent) => {
                format!("{} ^ {}", operand(base, 8), operand(exponent, 6))
            }
            Operation::Arithmetic(with, left, right) => {
                let symbol = match with {
                    Arithmetic::Add => "+",
                    Arithmetic::Subtract => "-",
                    Arithmetic::Multiply => "*",
                    Arithmetic::Divide | Arithmetic::Power => "/",
                };
                format!("{} {symbol} {}", operand(left, own), operand(right, own + 1))
            }
            Operation::Logic(logic, left, right) => {
                let word = if *logic == Logic::And { "and" } else { "or" };
                format!("{} {word} {}", operand(left, own), operand(right, own + 1))
            }
            Operation::Comparison(first, rest) => {
                let mut text = operand(first, own + 1);
                for (comparison, node) in rest {
                    let symbol = match comparison {
                        Comparison::Less => "<",
                        Comparison::LessOrEqual => "<=",
                        Comparison::Greater => ">",
                        Comparison::GreaterOrEqual => ">=",
                        Comparison::Equal => "==",
                        Comparison::NotEqual => "!=",
                    };
                    text += &format!(" {symbol} {}", operand(node, own + 1));
                }
                text
            }
            Operation::Call(function, arguments) => {
                let (name, ..) = FUNCTIONS.into_iter().find(|known| known.1 == *function).expect("a function");
                let arguments: Vec<String> = arguments.iter().map(|node| written(node, all_brackets)).collect();
                format!("{name}({})", arguments.join(", "))
            }
            other => panic!("no test writes {other:?}"),
        }
    }

    proptest! {
        #[test]
        fn expressions_are_read_as_they_were_written(number in number(ExpressionPurpose::Metric), truth in truth()) {
            for (purpose, root) in [(ExpressionPurpose::Metric, number), (ExpressionPurpose::Claim, truth)] {
                let exact = written(&root, true);
                for text in [&exact, &written(&root, false)] {
                    let read = parse(text, purpose).map_err(|error| error.to_string());
                    prop_assert_eq!(read.map(|read| written(&read.root, true)), Ok(exact.clone()), "{}", text);
                }
            }
        }
    }
}
