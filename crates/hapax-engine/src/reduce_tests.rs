use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// A row of two columns; `None` leaves the column as it is. No columns at all: the row is removed.
#[derive(Debug, Clone)]
struct Row {
    key: u8,
    version: u8,
    columns: Option<[Option<u8>; 2]>,
}

struct Facts<'a>(&'a [Row]);

impl RowFacts for Facts<'_> {
    fn cover(&self, event: usize) -> Cover {
        match self.0[event].columns {
            Some([Some(_), Some(_)]) | None => Cover::Whole,
            Some(_) => Cover::Part,
        }
    }

    fn removes(&self, event: usize) -> bool {
        self.0[event].columns.is_none()
    }

    fn replaces(&self, earlier: usize, later: usize) -> bool {
        self.0[earlier].version < self.0[later].version
    }
}

fn keys(rows: &[Row]) -> RowKeys {
    let mut keys = RowKeys::with_capacity(rows.len());
    for row in rows {
        // Longer than the prefix, so that the whole key is compared too.
        keys.push(|bytes| bytes.extend([&[7; 20][..], &[row.key]].concat()));
    }
    keys
}

/// The target, as a map: what each mode does with one row.
fn write(mode: ConflictMode, table: &mut Vec<(u8, u8, [u8; 2])>, row: &Row) {
    let found = table.iter().position(|(key, ..)| *key == row.key && mode != ConflictMode::Append);
    let Some(columns) = row.columns else {
        match (mode, found) {
            (ConflictMode::Update, Some(at)) => drop(table.remove(at)),
            (ConflictMode::Newer, Some(at)) if table[at].1 < row.version => {
                table[at] = (row.key, row.version, [255; 2])
            }
            (ConflictMode::Newer, None) => table.push((row.key, row.version, [255; 2])),
            _ => {}
        }
        return;
    };
    match found {
        None => table.push((row.key, row.version, columns.map(|c| c.unwrap_or(99)))),
        Some(at) if mode == ConflictMode::Update || (mode == ConflictMode::Newer && table[at].1 < row.version) => {
            let old = table[at].2;
            table[at] = (row.key, row.version, [columns[0].unwrap_or(old[0]), columns[1].unwrap_or(old[1])]);
        }
        Some(_) => {}
    }
}

fn state(mode: ConflictMode, before: &[Row], rows: &[Row], order: &[usize]) -> BTreeMap<(u8, usize), (u8, [u8; 2])> {
    let mut table = Vec::new();
    for row in before.iter().chain(order.iter().map(|event| &rows[*event])) {
        write(mode, &mut table, row);
    }
    table
        .into_iter()
        .enumerate()
        .map(|(at, (key, version, columns))| {
            // Order of rows matters to nobody but in append, where every row is its own.
            ((key, if mode == ConflictMode::Append { at } else { 0 }), (version, columns))
        })
        .collect()
}

fn rows(deletes: bool) -> impl Strategy<Value = Vec<Row>> {
    let cell = prop_oneof![3 => (0u8..9).prop_map(Some), 1 => Just(None)];
    let columns = (cell.clone(), cell).prop_map(|(a, b)| Some([a, b]));
    let columns = if deletes { prop_oneof![4 => columns, 1 => Just(None)].boxed() } else { columns.boxed() };
    let row = (0u8..4, 0u8..6, columns).prop_map(|(key, version, columns)| Row { key, version, columns });
    prop::collection::vec(row, 0..24)
}

proptest! {
    /// Goal: the reduced epoch leaves what the whole epoch in lane order leaves. Method: a model of the target, any
    /// rows, any rows that were there before.
    #[test]
    fn reducing_changes_nothing_that_a_reader_sees(before in rows(false), plain in rows(false), mixed in rows(true)) {
        for (mode, rows) in [
            (ConflictMode::Append, &plain),
            (ConflictMode::Ignore, &plain),
            (ConflictMode::Update, &mixed),
            (ConflictMode::Newer, &mixed),
        ] {
            let order = reduce(mode, &keys(rows), &Facts(rows));
            let all: Vec<usize> = (0..rows.len()).collect();
            prop_assert_eq!(state(mode, &before, rows, &order), state(mode, &before, rows, &all), "{:?}", mode);
        }
    }
}

fn whole(key: u8, version: u8) -> Row {
    Row { key, version, columns: Some([Some(version), Some(0)]) }
}

/// Goal: each mode keeps the event that PROTOCOL names, sorted by key. Method: two keys, three events of one.
#[test]
fn each_mode_keeps_its_own_event_of_a_key() {
    let rows = [whole(2, 5), whole(1, 1), whole(2, 9), whole(2, 7)];
    let kept = |mode| reduce(mode, &keys(&rows), &Facts(&rows));
    assert_eq!(kept(ConflictMode::Append), [0, 1, 2, 3]);
    assert_eq!(kept(ConflictMode::Ignore), [1, 0]);
    assert_eq!(kept(ConflictMode::Update), [1, 3]);
    assert_eq!(kept(ConflictMode::Newer), [1, 2]);
}

/// Goal: only different events of one key collide, and the first such pair is named.
#[test]
fn a_collision_names_the_two_events() {
    let rows = [whole(2, 5), whole(1, 1), whole(2, 5), whole(1, 2), whole(2, 6)];
    let differ = |a: usize, b: usize| rows[a].version != rows[b].version;
    assert_eq!(first_collision(&keys(&rows), differ), Some((1, 3)));
    assert_eq!(first_collision(&keys(&rows[..3]), differ), None);
}

/// Goal: a delete stays, whatever follows it: it clears what no event fills, and what refers to the row goes with it.
#[test]
fn a_delete_is_never_reduced_away() {
    let row = |columns| Row { key: 1, version: 1, columns };
    let whole = || row(Some([Some(1), Some(2)]));
    let rows = [whole(), row(None), whole(), row(None), whole(), whole()];
    assert_eq!(reduce(ConflictMode::Update, &keys(&rows), &Facts(&rows)), [1, 3, 5]);
}
