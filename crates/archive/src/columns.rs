//! The rows of a table, stored by column: each column is a slice of numbers or of texts.

use std::fmt;

/// The columns of a table. The length of each is the number of rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Columns {
    file: &'static str,
    length: usize,
    columns: Vec<(&'static str, Data)>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Data {
    Numbers(Vec<f64>),
    Texts(Vec<String>),
}

/// The error for a column name that the table does not contain with the requested type.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnknownColumn {
    message: String,
}

impl fmt::Display for UnknownColumn {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for UnknownColumn {}

impl UnknownColumn {
    pub(crate) fn new<'a>(file: &str, what: &str, name: &str, known: impl Iterator<Item = &'a str> + Clone) -> Self {
        let distance = |known: &str| strsim::damerau_levenshtein(&name.to_lowercase(), known);
        let nearest = known.clone().map(|known| (distance(known), known)).min();
        let near = match nearest.filter(|(distance, _)| *distance <= (name.len() / 3).max(2)) {
            Some((_, near)) => format!("; did you mean `{near}`?"),
            None => String::new(),
        };
        let all = known.collect::<Vec<_>>().join(", ");
        UnknownColumn { message: format!("{file} has no column of {what} `{name}`{near} (one of: {all})") }
    }
}

impl Columns {
    pub(crate) fn new(file: &'static str, length: usize, columns: Vec<(&'static str, Data)>) -> Self {
        Columns { file, length, columns }
    }

    /// Returns the file's name.
    pub fn file(&self) -> &'static str {
        self.file
    }

    /// Appends rows of the same table.
    pub(crate) fn append(&mut self, more: Columns) {
        self.length += more.length;
        for ((_, data), (_, more)) in self.columns.iter_mut().zip(more.columns) {
            match (data, more) {
                (Data::Numbers(numbers), Data::Numbers(more)) => numbers.extend(more),
                (Data::Texts(texts), Data::Texts(more)) => texts.extend(more),
                _ => unreachable!("both are columns of the same table, so their types are equal"),
            }
        }
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Returns whether the table has no rows.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Returns the names of all columns, in the order of the file.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.columns.iter().map(|(name, _)| *name)
    }

    /// Returns a column of numbers. Empty cells are NaN; times are in seconds.
    ///
    /// # Panics
    /// If the table has no such column of numbers; [`Columns::find_column`] returns this as an error.
    pub fn column(&self, name: &str) -> &[f64] {
        self.find_column(name).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Returns a column of texts.
    ///
    /// # Panics
    /// If the table has no such column of texts; [`Columns::find_text_column`] returns this as an error.
    pub fn text_column(&self, name: &str) -> &[String] {
        self.find_text_column(name).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Returns a column of numbers. Empty cells are NaN; times are in seconds.
    ///
    /// # Errors
    /// If the table has no such column of numbers.
    pub fn find_column(&self, name: &str) -> Result<&[f64], UnknownColumn> {
        self.find("numbers", name, |data| match data {
            Data::Numbers(numbers) => Some(numbers.as_slice()),
            Data::Texts(_) => None,
        })
    }

    /// Returns a column of texts.
    ///
    /// # Errors
    /// If the table has no such column of texts.
    pub fn find_text_column(&self, name: &str) -> Result<&[String], UnknownColumn> {
        self.find("texts", name, |data| match data {
            Data::Texts(texts) => Some(texts.as_slice()),
            Data::Numbers(_) => None,
        })
    }

    fn find<'a, T>(
        &'a self,
        what: &str,
        name: &str,
        of_type: impl Fn(&'a Data) -> Option<T> + Copy,
    ) -> Result<T, UnknownColumn> {
        let mut known = self.columns.iter().filter_map(move |(known, data)| Some((*known, of_type(data)?)));
        let names = known.clone().map(|(known, _)| known);
        match known.find(|(known, _)| *known == name) {
            Some((_, column)) => Ok(column),
            None => Err(UnknownColumn::new(self.file, what, name, names)),
        }
    }
}
