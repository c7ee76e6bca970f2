//! Loss models, which a scenario selects by name. Each model is declared in its own file. To add a model, add a file
//! and two lines here.

pub mod bernoulli;
pub mod droplist;
pub mod gilbert_elliott;
pub mod periodic;

use super::settings::{Impairment, ImpairmentComponent};
use fullpipe_schema::component::{Catalog, Component, choice_component, variants};
use fullpipe_schema::{Field, FieldKind, Table, Tree, ValueData, Variants};

/// A component that declares a loss model. A setting of `None` means no loss.
pub type LossComponent = Component<Option<Impairment>, ()>;

const ALL: &[&LossComponent] =
    &[&NONE, &bernoulli::BERNOULLI, &periodic::PERIODIC, &gilbert_elliott::GILBERT_ELLIOTT, &droplist::DROPLIST];

/// All loss models, in the order of the reference page and of the program's lists.
pub static LOSSES: Catalog<Option<Impairment>, ()> = Catalog { key: "kind", components: &[ALL] };

/// The table that selects a loss model.
pub static TABLE: Table = Table {
    name: "loss",
    text: "Loss of frames after their transmission.",
    variants: Some(&Variants {
        key: LOSSES.key,
        default: Some("none"),
        text: "It selects the loss model.",
        list: &variants::<_, _, { ALL.len() }>(LOSSES.components),
        later: &["trace"],
    }),
    ..Table::EMPTY
};

static NONE: LossComponent = choice_component("none", "no loss.", &[], |_, _| Ok(None));

pub(super) static LOSS: ImpairmentComponent = ImpairmentComponent {
    field: Field::empty("loss", FieldKind::Table(&TABLE), "Loss of frames after their transmission."),
    fill: |direction| {
        let mut none = Tree::empty_at(direction.place);
        none.fill(LOSSES.key, ValueData::Choice(NONE.declaration.name));
        direction.fill("loss", ValueData::Table(none));
        if let Some(loss) = direction.table_mut("loss") {
            periodic::fill(loss);
        }
    },
    read: |reader, value| {
        let path = reader.path_of("loss");
        Ok(LOSSES.read(&mut reader.nested(value.table(), &path), &())?.into_iter().collect())
    },
};
