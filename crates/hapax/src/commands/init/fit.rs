//! How fields of the source and columns of the table go together. Pure.

use hapax_connect::table::described::{Described, DescribedColumn, DescribedTable};
use hapax_model::field::FieldPath;

use crate::sample::{Field, Sample, shown};

/// Fields beside columns.
#[derive(Debug, Clone)]
pub(super) struct Fit {
    /// What was found under the table's name.
    pub(super) found: Described,
    fields: Vec<Field>,
    /// What is inside objects that are used as maps: a column that is there may take it.
    inside_maps: Vec<FieldPath>,
    /// Columns with the field that feeds them.
    pub(super) fed: Vec<(DescribedColumn, FieldPath)>,
    /// Columns that no field feeds.
    pub(super) unfed: Vec<DescribedColumn>,
    /// Fields that no column takes.
    pub(super) spare: Vec<FieldPath>,
}

impl Fit {
    pub(super) fn of(sample: &Sample, found: &Described) -> Self {
        let mut fit = Self {
            found: found.clone(),
            fields: sample.fields.clone(),
            inside_maps: sample.inside_maps.clone(),
            fed: Vec::new(),
            unfed: Vec::new(),
            spare: Vec::new(),
        };
        let Described::Table(table) = found else { return fit };
        for column in &table.columns {
            match fit.field_for(&column.name) {
                Some(path) => fit.fed.push((column.clone(), path)),
                None => fit.unfed.push(column.clone()),
            }
        }
        let taken = |path: &FieldPath| fit.fed.iter().any(|(_, fed)| fed == path);
        fit.spare = fit.fields.iter().map(|field| field.path.clone()).filter(|path| !taken(path)).collect();
        fit
    }

    /// The field of that name, else the one whose name is the same but for capitals and what joins its words.
    fn field_for(&self, column: &str) -> Option<FieldPath> {
        let exact = self.fields.iter().find(|field| *field.path.names() == [column.to_owned()]);
        let is_alike = |path: &&FieldPath| plain(&path.names().join("_")) == plain(column);
        let alike = || self.fields.iter().map(|field| &field.path).find(is_alike);
        let inside = || self.inside_maps.iter().find(is_alike);
        exact.map(|field| &field.path).or_else(alike).or_else(inside).cloned()
    }

    pub(super) const fn table(&self) -> Option<&DescribedTable> {
        match &self.found {
            Described::Table(table) => Some(table),
            Described::Nothing | Described::Other(_) => None,
        }
    }

    pub(super) fn fields(&self) -> &[Field] {
        &self.fields
    }

    pub(super) fn has_fields(&self) -> bool {
        !self.fields.is_empty()
    }

    pub(super) fn has_field(&self, name: &str) -> bool {
        name.parse::<FieldPath>().is_ok_and(|path| self.fields.iter().any(|field| field.path == path))
    }

    pub(super) fn field_names(&self) -> Vec<String> {
        self.fields.iter().map(|field| shown(&field.path)).collect()
    }

    /// The fields that name a row: those of the primary key, else of another unique index, where fields feed all of it.
    /// Without a table, a field that looks like an id and is another in every event.
    pub(super) fn proposed_keys(&self) -> Vec<String> {
        let feed = |column: &String| self.fed.iter().find(|(fed, _)| fed.name == *column).map(|(_, path)| shown(path));
        if let Some(table) = self.table() {
            let indexes =
                std::iter::once(&table.primary_key).chain(&table.unique).filter(|columns| !columns.is_empty());
            return indexes
                .map(|columns| columns.iter().map(feed).collect::<Option<Vec<_>>>())
                .find_map(|all| all)
                .unwrap_or_default();
        }
        let is_id = |field: &&Field| {
            let name = plain(&field.path.names().join("_"));
            field.unique && (name.ends_with("id") || name.ends_with("key") || name.ends_with("number"))
        };
        let shortest =
            self.fields.iter().filter(is_id).min_by_key(|field| (field.path.names().len(), shown(&field.path).len()));
        shortest.map(|field| shown(&field.path)).into_iter().collect()
    }

    /// What the table is like, for people.
    pub(super) fn describe(&self, table: &str) -> Vec<String> {
        match &self.found {
            Described::Nothing => vec![format!("There is no table {table} yet; the file will say how to make it.")],
            Described::Other(what) => vec![format!("{table} is {what}: rows cannot be delivered into it.")],
            Described::Table(live) => {
                let columns: Vec<String> = live
                    .columns
                    .iter()
                    .map(|column| format!("{} {}", column.name, column.declared).trim().to_owned())
                    .collect();
                let key = if live.primary_key.is_empty() {
                    "no primary key".into()
                } else {
                    format!("primary key {}", live.primary_key.join(", "))
                };
                vec![format!("Table {table} has {}; {key}", columns.join(", "))]
            }
        }
    }
}

fn plain(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}
