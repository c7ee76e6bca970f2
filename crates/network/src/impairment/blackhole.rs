//! Black holes: time intervals in which every frame is lost.

use super::FRAME_NUMBER;
use super::settings::{
    Impairment, ImpairmentComponent, ImpairmentContext, ImpairmentModel, ImpairmentSettings, ImpairmentStage,
};
use fullpipe_schema::component::{SettingsReader, choices};
use fullpipe_schema::{Choice, Field, FieldKind, Table, Value};
use fullpipe_units::{Duration, Instant};
use std::sync::Arc;

pub(super) static BLACKHOLES: ImpairmentComponent = ImpairmentComponent {
    field: Field::optional(
        "blackholes",
        FieldKind::Tables(&BLACKHOLE),
        "none",
        "Intervals in which every frame is lost.",
    ),
    fill: |_| (),
    read: |reader, value| {
        let mut read = |(index, tree)| {
            let path = reader.path_of(&format!("blackholes.{index}"));
            Arc::new(Blackhole::read(&mut reader.nested(tree, &path))) as Impairment
        };
        Ok(value.tables().iter().enumerate().map(&mut read).collect())
    },
};

/// The names that select whether arrivals (true) or departures are lost.
static LOST: [(Choice, bool); 2] = [
    (Choice::new("departures", "frames whose transmission ends in the interval."), false),
    (Choice::new("arrivals", "frames that would arrive in the interval."), true),
];

static BLACKHOLE: Table = Table {
    name: "black hole",
    text: "An interval in which every frame is lost.",
    fields: &[&[
        Field::required("from", FieldKind::DURATION, "Start of the interval."),
        Field::required("until", FieldKind::DURATION, "End of the interval, exclusive."),
        Field::optional("period", FieldKind::INTERVAL, "never", "Time from one start of the interval to the next."),
        Field::optional("times", FRAME_NUMBER, "without end", "With `period`: number of intervals.").with_unit("times"),
        Field::default("of", FieldKind::Choice(&choices(&LOST)), "departures", "Which frames are lost."),
    ]],
    ..Table::EMPTY
};

/// A time interval, optionally repeated, in which every frame is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Blackhole {
    /// Start of the interval: time since the start of the run.
    pub from: Duration,
    /// Exclusive end of the interval: time since the start of the run.
    pub until: Duration,
    /// Time from the start of one interval to the start of the next; 0 if the interval does not repeat.
    pub period: Duration,
    /// Number of intervals, including the first; 0 means no limit.
    pub times: u64,
    /// Whether frames that arrive in the interval are lost; otherwise, frames whose transmission ends in the interval
    /// are lost.
    pub of_arrivals: bool,
}

impl Blackhole {
    fn read(reader: &mut SettingsReader<'_, '_>) -> Self {
        let (tree, path) = (reader.tree, reader.path);
        if tree.duration("from") >= tree.duration("until") {
            reader.add_error(
                "until",
                format!("{path}.until = {} is not after from = {}", tree.duration("until"), tree.duration("from")),
                "a later time",
            );
        }
        if tree.get("times").is_some() && tree.get("period").is_none() {
            reader.add_error("times", format!("{path} has times, but no period"), "a period");
        }
        Blackhole {
            from: tree.duration("from"),
            until: tree.duration("until"),
            period: tree.get("period").map_or(Duration::ZERO, Value::duration),
            times: tree.get("times").map_or(0, |times| times.integer() as u64),
            of_arrivals: tree.choice_value("of", &LOST),
        }
    }

    /// Returns whether it removes a frame whose transmission ended at `finish` and that would arrive at `arrival`.
    fn takes(&self, finish: Instant, arrival: Instant) -> bool {
        let at = if self.of_arrivals { arrival } else { finish }.saturating_since(Instant::ZERO);
        if at < self.from {
            return false;
        }
        let since_first = (at - self.from).as_nanos();
        let round = since_first.checked_div(self.period.as_nanos()).unwrap_or(0);
        if self.times > 0 && round >= self.times {
            return false;
        }
        since_first - round * self.period.as_nanos() < (self.until.saturating_sub(self.from)).as_nanos()
    }
}

impl ImpairmentSettings for Blackhole {
    fn build(&self, _: &ImpairmentContext<'_>) -> ImpairmentModel {
        let hole = *self;
        ImpairmentModel::new(ImpairmentStage::Arrival, move |_, outcome| {
            outcome.lost |= hole.takes(outcome.finish, outcome.arrival);
        })
    }
}
