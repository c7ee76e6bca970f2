//! The declarations of tables as data, and the page that is generated from them.

mod declared;
mod page;

use crate::table::RecordTable;

pub use declared::{run_table_references, study_table_references};
pub use page::render_records_page;

/// A table without the type of its rows, for documentation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableReference {
    /// The file's name.
    pub file: &'static str,
    /// One sentence: the subject of a row.
    pub text: &'static str,
    /// The columns of the table.
    pub columns: Vec<ColumnReference>,
}

/// A column without the type of its rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnReference {
    /// Name of the column.
    pub name: &'static str,
    /// Name of the type of the values.
    pub kind: &'static str,
    /// Unit of the values; empty for texts and dimensionless numbers.
    pub unit: &'static str,
    /// Meaning of the column.
    pub text: &'static str,
    /// Whether a cell may be empty.
    pub is_optional: bool,
}

impl<R> RecordTable<R> {
    /// Returns the declaration of the table, for documentation.
    pub fn reference(&self) -> TableReference {
        let column = |column: &crate::Column<R>| ColumnReference {
            name: column.name,
            kind: column.kind.name(),
            unit: column.unit,
            text: column.text,
            is_optional: column.is_optional,
        };
        TableReference { file: self.file, text: self.text, columns: self.columns.iter().map(column).collect() }
    }
}

impl TableReference {
    /// Returns the errors in the declaration: duplicate names, units that differ from the suffix of the name, and texts
    /// that are not sentences. Tests require that a declaration has no errors.
    pub fn declaration_errors(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let mut fault = |name: &str, what: String| faults.push(format!("{}, column {name}: {what}", self.file));
        for (index, column) in self.columns.iter().enumerate() {
            let ColumnReference { name, kind, unit, text, .. } = column;
            if self.columns[..index].iter().any(|other| other.name == *name) {
                fault(name, "the name occurs twice".to_owned());
            }
            let is_named = matches!(*unit, "bit/s" | "s" | "bytes");
            match unit_of_name(name) {
                Some(named) if named != *unit => {
                    fault(name, format!("the unit is {unit:?}, the name ends with {named:?}"))
                }
                None if is_named => fault(name, format!("the name does not end with the unit {unit}")),
                _ => {}
            }
            if *kind == "text" && !unit.is_empty() || *kind == "seconds" && *unit != "s" {
                fault(name, format!("a {kind} in {unit:?}"));
            }
            if !text.ends_with('.') || text.contains("  ") || text.contains('|') {
                fault(name, format!("{text:?} is not a sentence for a table"));
            }
        }
        faults
    }
}

/// Returns the unit that a column's name has as its suffix.
fn unit_of_name(name: &str) -> Option<&'static str> {
    let units = [("bps", "bit/s"), ("s", "s"), ("bytes", "bytes"), ("packets", "packets"), ("ratio", "")];
    let ends_with = |ending: &str| name.strip_suffix(ending).is_some_and(|stem| stem.is_empty() || stem.ends_with('_'));
    units.into_iter().find(|(ending, _)| ends_with(ending)).map(|(_, unit)| unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_has_the_unit_of_its_name() {
        for table in run_table_references().into_iter().chain(study_table_references()) {
            assert_eq!(table.declaration_errors(), Vec::<String>::new());
        }
    }

    #[test]
    fn a_wrong_declaration_has_faults() {
        let column = |name, kind, unit, text| ColumnReference { name, kind, unit, text, is_optional: false };
        let columns = vec![
            column("sent_bytes", "count", "bytes", "Bytes sent."),
            column("rate_bps", "number", "s", "A rate."),
            column("rate", "number", "bit/s", "A rate."),
            column("s", "seconds", "", "A time."),
            column("name", "text", "bytes", "A name."),
            column("count", "count", "", "No full stop"),
            column("count", "count", "", "A count."),
        ];
        let faults = TableReference { file: "t.csv", text: "A row.", columns }.declaration_errors();
        let of = |name: &str| faults.iter().filter(|fault| fault.contains(&format!("column {name}:"))).count();
        assert_eq!(["sent_bytes", "rate_bps", "rate", "s", "name", "count"].map(of), [0, 1, 1, 2, 2, 2], "{faults:#?}");
    }
}
