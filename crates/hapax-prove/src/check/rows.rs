//! Rows against what the table must hold: lost, doubled, phantom, reordered, wrong.

use std::collections::BTreeMap;

use super::{Anomaly, Finding, some};
use crate::shape::{Contents, Row, Shape};

/// Compares `found`, in the order of insertion, with `expected`. `event` gives the event with a number, if any
/// input can make a row of it: what tells a phantom from a row that is only wrong.
pub fn judge<'a>(
    shape: Shape,
    expected: &Contents,
    found: &[Row],
    event: impl Fn(i64) -> Option<&'a Row>,
) -> Vec<Finding> {
    let mut by_name: BTreeMap<String, Vec<&Row>> = BTreeMap::new();
    for row in found {
        by_name.entry(shape.row_name(row)).or_default().push(row);
    }
    let lost: Vec<&String> = expected.keys().filter(|name| !by_name.contains_key(*name)).collect();
    let doubled: Vec<&String> = by_name.iter().filter(|(_, rows)| rows.len() > 1).map(|(name, _)| name).collect();
    let mut phantom = Vec::new();
    let mut wrong = Vec::new();
    for (name, rows) in &by_name {
        for row in rows {
            let made_by_input = event(row.n) == Some(*row);
            match expected.get(name) {
                _ if !made_by_input => phantom.push(format!("{name} {row:?}")),
                Some(wanted) if wanted == *row => {}
                Some(wanted) => wrong.push(format!("{name} is input {}, must be input {}", row.n, wanted.n)),
                None => wrong.push(format!("{name} is input {}, must not be there", row.n)),
            }
        }
    }
    let mut findings = Vec::new();
    let mut report = |anomaly, count: usize, text: String| {
        if count > 0 {
            findings.push(Finding::new(anomaly, format!("{count}: {text}")));
        }
    };
    report(Anomaly::Lost, lost.len(), some(&lost));
    report(Anomaly::Doubled, doubled.len(), some(&doubled));
    report(Anomaly::Phantom, phantom.len(), some(&phantom));
    report(Anomaly::WrongState, wrong.len(), some(&wrong));
    let reordered = reordered(shape, found);
    report(Anomaly::Reordered, reordered.len(), some(&reordered));
    findings
}

/// In a table that keeps every event, those of one key must have been inserted in lane order. A repeat is another
/// anomaly: only the first time counts.
fn reordered(shape: Shape, found: &[Row]) -> Vec<String> {
    if shape != Shape::Append {
        return Vec::new();
    }
    let mut last: BTreeMap<i64, i64> = BTreeMap::new();
    let mut seen = std::collections::BTreeSet::new();
    let mut wrong = Vec::new();
    for row in found.iter().filter(|row| seen.insert(row.n)) {
        let before = last.entry(row.order_id).or_insert(row.n);
        if *before > row.n {
            wrong.push(format!("order {}: input {} after input {before}", row.order_id, row.n));
        }
        *before = row.n.max(*before);
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::truth::Truth;
    use crate::workload::{Mix, inputs};

    fn truth(shape: Shape) -> Truth {
        Truth::new(shape, inputs(shape, Mix::Clean, 200, 11))
    }

    fn found_by(shape: Shape, break_it: impl FnOnce(&mut Vec<Row>)) -> Vec<Anomaly> {
        let truth = truth(shape);
        let expected = truth.contents_after(200);
        let mut rows: Vec<Row> = expected.values().cloned().collect();
        rows.sort_by_key(|row| row.n);
        break_it(&mut rows);
        let findings = judge(shape, &expected, &rows, |n| truth.event(n));
        findings.into_iter().map(|f| f.anomaly).collect()
    }

    /// Goal: a right table raises no alarm, whatever its shape.
    #[test]
    fn a_right_table_is_left_in_peace() {
        for shape in [Shape::Append, Shape::IgnoreFirst, Shape::IgnoreEvent, Shape::Update, Shape::Newer] {
            assert_eq!(found_by(shape, |_| {}), [], "{shape:?}");
        }
    }

    /// Goal: a lost input is seen in every shape. Method: remove one row.
    #[test]
    fn a_lost_row_is_found() {
        for shape in [Shape::Append, Shape::IgnoreFirst, Shape::Update, Shape::Newer] {
            assert_eq!(found_by(shape, |rows| drop(rows.remove(20))), [Anomaly::Lost], "{shape:?}");
        }
    }

    /// Goal: a doubled input is seen. Method: insert a row again at the end.
    #[test]
    fn a_doubled_row_is_found() {
        let again = |rows: &mut Vec<Row>| rows.push(rows[33].clone());
        assert_eq!(found_by(Shape::Append, again), [Anomaly::Doubled]);
    }

    /// Goal: a row that no input explains is seen. Method: an unknown number; a known number with other content.
    #[test]
    fn a_phantom_row_is_found() {
        let unknown = |rows: &mut Vec<Row>| {
            let stranger = Row { n: 9999, ..rows[0].clone() };
            rows.push(stranger);
        };
        assert_eq!(found_by(Shape::Append, unknown), [Anomaly::Phantom]);
        assert_eq!(found_by(Shape::Append, |rows| rows[3].amount += 1), [Anomaly::Phantom]);
        assert_eq!(found_by(Shape::Update, |rows| rows[3].amount += 1), [Anomaly::Phantom]);
    }

    /// Goal: a key left at an older event is seen. Method: put an earlier event of the same key back.
    #[test]
    fn an_older_event_of_a_key_is_found() {
        let stale = |shape: Shape| {
            found_by(shape, |rows| {
                let truth = truth(shape);
                let earlier =
                    |row: &Row| (1..row.n).filter_map(|n| truth.event(n)).find(|e| e.order_id == row.order_id);
                let (at, older) = rows
                    .iter()
                    .enumerate()
                    .find_map(|(at, row)| Some((at, earlier(row)?.clone())))
                    .expect("some key was updated");
                rows[at] = older;
            })
        };
        assert_eq!(stale(Shape::Update), [Anomaly::WrongState]);
        assert_eq!(stale(Shape::Newer), [Anomaly::WrongState]);
    }

    /// Goal: a deleted key that came back is seen. Method: put its last event before the delete back.
    #[test]
    fn a_row_that_should_be_gone_is_found() {
        let truth = truth(Shape::Update);
        let gone = (1..=200)
            .filter_map(|n| truth.event(n))
            .find(|e| e.op == "d" && !truth.contents_after(200).contains_key(&Shape::Update.row_name(e)));
        let order_id = gone.expect("some key was deleted").order_id;
        let before = (1..=200).filter_map(|n| truth.event(n)).find(|e| e.order_id == order_id).expect("its creation");
        assert_eq!(found_by(Shape::Update, |rows| rows.push(before.clone())), [Anomaly::WrongState]);
    }

    /// Goal: two events of one key in the wrong order are seen; of two keys they are not. Method: swap rows.
    #[test]
    fn events_of_one_key_out_of_order_are_found() {
        let swap_one_key = |rows: &mut Vec<Row>| {
            let first = rows[0].order_id;
            let later = rows.iter().rposition(|row| row.order_id == first).expect("updated later");
            assert!(later > 0);
            rows.swap(0, later);
        };
        assert!(found_by(Shape::Append, swap_one_key).contains(&Anomaly::Reordered));
        let swap_two_keys = |rows: &mut Vec<Row>| {
            let at = (0..rows.len() - 1).find(|at| rows[*at].order_id != rows[at + 1].order_id).expect("two keys");
            rows.swap(at, at + 1);
        };
        assert_eq!(found_by(Shape::Append, swap_two_keys), []);
    }
}
