//! The components `fifo` (a first-in, first-out queue) and `none` (the device queue alone); the queue is [`Fifo`].

use super::settings::{
    Discipline, DisciplineComponent, DisciplineContext, DisciplineSettings, LIMIT_KEY, QueueCapacity,
};
use crate::queue::{Fifo, Limit, QueueDiscipline};
use fullpipe_schema::component::{Component, Declaration};
use fullpipe_schema::{Field, FieldKind};
use std::sync::Arc;

pub(super) static NONE: DisciplineComponent = Component {
    declaration: Declaration {
        name: "none",
        text: "no discipline; packets wait only in the device's queue.",
        fields: &[&[Field::optional(
            LIMIT_KEY,
            FieldKind::LinkQueueLimit,
            "as `queue` of the device",
            "Limit of the device's queue; overrides `queue`.",
        )]],
        ..Declaration::EMPTY
    },
    read: |_, _| Ok(None),
};

pub(super) static FIFO: DisciplineComponent = Component {
    declaration: Declaration {
        name: "fifo",
        text: "first in, first out.",
        fields: &[&[Field::required(
            LIMIT_KEY,
            FieldKind::LinkQueueLimit,
            "Limit of the discipline's queue, in addition to the device's queue.",
        )]],
        ..Declaration::EMPTY
    },
    read: |reader, device| {
        Ok(Some(Arc::new(FifoSpecification { limit: device.limit(reader, LIMIT_KEY) }) as Discipline))
    },
};

/// Settings of a first-in, first-out queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FifoSpecification {
    /// Limit of the queue.
    pub limit: Limit,
}

impl DisciplineSettings for FifoSpecification {
    fn name(&self) -> &'static str {
        FIFO.declaration.name
    }

    fn build(&self, _: &DisciplineContext<'_>) -> Box<dyn QueueDiscipline> {
        Box::new(Fifo::new(self.limit))
    }

    fn capacity(&self) -> QueueCapacity {
        QueueCapacity::from_limit(self.limit)
    }

    fn reorders(&self) -> bool {
        false
    }

    fn is_drop_tail(&self) -> bool {
        true
    }
}
