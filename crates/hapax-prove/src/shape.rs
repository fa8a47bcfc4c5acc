//! The kinds of target table, and what each should hold after some inputs.
//!
//! Reads: rows as the harness wrote them into the input. Writes: nothing.
//! Invariant: what a table should hold is computed here from the definition of its mode, never from Hapax.

use std::collections::BTreeMap;

/// One row of the target, which is also one event of the input.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Row {
    /// The input's number, unique: the source id that every row carries.
    pub n: i64,
    /// The entity key of most shapes.
    pub order_id: i64,
    /// With `reference`, the entity key of the joined shape.
    pub region: String,
    /// See `region`.
    pub reference: String,
    /// Whose balance it changes.
    pub account: String,
    /// By how much.
    pub amount: i64,
    /// `c`, `u` or `d`.
    pub op: String,
    /// A place that only one order may hold at a time.
    pub slot: Option<String>,
    /// What a declared version column holds; not always in the order of the lane.
    pub version: i64,
}

/// A kind of target table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Shape {
    /// Every event a row; no unique index; a balance kept by a trigger.
    Append,
    /// Primary key `order_id`, which alone names the event; repetitions are dropped.
    IgnoreFirst,
    /// Primary key `order_id`; the first event of a key stays, later ones differ from it and are dropped.
    IgnoreDiffering,
    /// Primary key `hapax_key`, the event key: every event once.
    IgnoreEvent,
    /// Primary key `order_id`; the last event stays; deletes remove.
    Update,
    /// Primary key `hapax_key` over two text fields that a joined key would confuse.
    UpdateJoined,
    /// Primary key `order_id` and a second unique column that is handed on within an epoch.
    UpdateSlots,
    /// Primary key `order_id`; the highest position stays; deletes are tombstones.
    Newer,
    /// The same with a declared version column, whose values do not come in order.
    NewerDeclared,
}

impl Shape {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Append,
        Self::IgnoreFirst,
        Self::IgnoreDiffering,
        Self::IgnoreEvent,
        Self::Update,
        Self::UpdateJoined,
        Self::UpdateSlots,
        Self::Newer,
        Self::NewerDeclared,
    ];
}

/// What a table should hold, by what names a row in it.
pub type Contents = BTreeMap<String, Row>;

impl Shape {
    /// Its name in cells.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Append => "append",
            Self::IgnoreFirst => "ignore-first",
            Self::IgnoreDiffering => "ignore-differing",
            Self::IgnoreEvent => "ignore-event",
            Self::Update => "update",
            Self::UpdateJoined => "update-joined",
            Self::UpdateSlots => "update-slots",
            Self::Newer => "newer",
            Self::NewerDeclared => "newer-declared",
        }
    }

    /// Its conflict mode in the configuration.
    #[must_use]
    pub const fn mode(self) -> &'static str {
        match self {
            Self::Append => "append",
            Self::IgnoreFirst | Self::IgnoreDiffering | Self::IgnoreEvent => "ignore",
            Self::Update | Self::UpdateJoined | Self::UpdateSlots => "update",
            Self::Newer | Self::NewerDeclared => "newer",
        }
    }

    /// The fields of the entity key.
    #[must_use]
    pub const fn key_fields(self) -> &'static str {
        match self {
            Self::UpdateJoined => "region, reference",
            Self::Append
            | Self::IgnoreFirst
            | Self::IgnoreDiffering
            | Self::IgnoreEvent
            | Self::Update
            | Self::UpdateSlots
            | Self::Newer
            | Self::NewerDeclared => "order_id",
        }
    }

    /// What the deduplication block says beyond its fields.
    #[must_use]
    pub const fn deduplication_extra(self) -> &'static str {
        match self {
            Self::IgnoreFirst => ", unique: true",
            Self::Append
            | Self::IgnoreDiffering
            | Self::IgnoreEvent
            | Self::Update
            | Self::UpdateJoined
            | Self::UpdateSlots
            | Self::Newer
            | Self::NewerDeclared => "",
        }
    }

    /// What the sink's block says beyond path, table, mode and progress.
    #[must_use]
    pub const fn sink_extra(self) -> &'static str {
        match self {
            Self::Append | Self::IgnoreFirst | Self::IgnoreDiffering | Self::UpdateSlots => "",
            Self::IgnoreEvent | Self::UpdateJoined => ", keyColumn: hapax_key",
            Self::Update | Self::Newer => ", deleteWhen: '.op == \"d\"'",
            Self::NewerDeclared => ", versionColumn: version, deleteWhen: '.op == \"d\"'",
        }
    }

    /// What names a row in this kind of table.
    #[must_use]
    pub fn row_name(self, row: &Row) -> String {
        match self {
            Self::Append | Self::IgnoreEvent => format!("input {}", row.n),
            Self::IgnoreFirst
            | Self::IgnoreDiffering
            | Self::Update
            | Self::UpdateSlots
            | Self::Newer
            | Self::NewerDeclared => {
                format!("order {}", row.order_id)
            }
            Self::UpdateJoined => format!("order {:?}", (&row.region, &row.reference)),
        }
    }

    /// Whether `row`, which `contents` may hold as a tombstone, is a row of the table.
    #[must_use]
    pub fn is_alive(self, row: &Row) -> bool {
        !(matches!(self, Self::Newer | Self::NewerDeclared) && row.op == "d")
    }

    /// Applies one event to what the table holds, tombstones included; returns the rows that left and came.
    pub fn apply(self, contents: &mut Contents, row: &Row) -> (Option<Row>, Option<Row>) {
        let name = self.row_name(row);
        let stays = contents.get(&name).is_some_and(|there| match self {
            Self::Append | Self::IgnoreEvent | Self::IgnoreFirst | Self::IgnoreDiffering => true,
            Self::Update | Self::UpdateJoined | Self::UpdateSlots => false,
            Self::Newer => there.n > row.n,
            Self::NewerDeclared => there.version > row.version,
        });
        if stays {
            return (None, None);
        }
        if self == Self::Update && row.op == "d" {
            return (contents.remove(&name), None);
        }
        let left = contents.insert(name, row.clone()).filter(|row| self.is_alive(row));
        (left, Some(row.clone()).filter(|row| self.is_alive(row)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(n: i64, order_id: i64, op: &str) -> Row {
        Row {
            n,
            order_id,
            region: "eu".into(),
            reference: format!("r{order_id}"),
            account: "a0".into(),
            amount: 1,
            op: op.into(),
            slot: None,
            version: 10 - n,
        }
    }

    fn left_after(shape: Shape) -> Vec<i64> {
        let mut contents = Contents::new();
        for event in [row(1, 7, "c"), row(2, 8, "c"), row(3, 7, "u"), row(4, 8, "d")] {
            shape.apply(&mut contents, &event);
        }
        contents.values().filter(|row| shape.is_alive(row)).map(|row| row.n).collect()
    }

    /// Goal: each mode's definition. Method: one key created and updated, one created and deleted.
    #[test]
    fn each_mode_leaves_what_its_definition_says() {
        assert_eq!(left_after(Shape::Append), [1, 2, 3, 4]);
        assert_eq!(left_after(Shape::IgnoreEvent), [1, 2, 3, 4]);
        assert_eq!(left_after(Shape::IgnoreFirst), [1, 2]);
        assert_eq!(left_after(Shape::IgnoreDiffering), [1, 2]);
        assert_eq!(left_after(Shape::Update), [3]);
        assert_eq!(left_after(Shape::Newer), [3]);
        assert_eq!(left_after(Shape::NewerDeclared), [1, 2], "versions count down here");
        assert_eq!(left_after(Shape::UpdateSlots), [3, 4]);
    }
}
